// What this browser remembers beyond a session: language, theme, keys. None of it is a secret.

import { cell } from "./cell.js";

function remembered(name, fallback, allowed) {
  const key = `flowgate.${name}`;
  const stored = read(key);
  const value = cell(allowed.includes(stored) ? stored : fallback);
  value.watch((next) => write(key, next));
  return value;
}

// Storage may be switched off; then nothing is remembered.
function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Not remembered.
  }
}

export const THEMES = ["system", "light", "dark"];
export const LANGUAGES = ["en", "zh-CN"];

export const language = remembered("language", (navigator.language ?? "en").toLowerCase().startsWith("zh") ? "zh-CN" : "en", LANGUAGES);
export const theme = remembered("theme", "system", THEMES);
/** Whether single letters are keys: `on` or `off`. */
export const letters = remembered("letters", "on", ["on", "off"]);

/** Shows the theme and the language on the document, now and at each change. */
export function applyPrefs() {
  const root = document.documentElement;
  const show = () => {
    root.lang = language.get();
    if (theme.get() === "system") delete root.dataset.theme;
    else root.dataset.theme = theme.get();
  };
  language.watch(show);
  theme.watch(show);
  show();
}
