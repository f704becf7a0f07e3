// The buttons of the theme and of the language, in the rail and below the login.

import { useCell } from "../state/cell.js";
import { language, theme, THEMES } from "../state/prefs.js";
import { html } from "./html.js";
import { changeLanguage, w } from "./words.js";

/** Goes to the next theme. */
export const ThemeButton = ({ tone = "" }) => html`<button type="button" class=${tone} onClick=${() => theme.set(THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length])}>${w(`theme.${useCell(theme)}`)}</button>`;

/** Changes the language; it is named in its own words. */
export function LanguageButton({ tone = "" }) {
  const other = useCell(language) === "en" ? "zh-CN" : "en";
  return html`<button type="button" class=${tone} lang=${other} onClick=${() => changeLanguage(other).catch(() => {})}>${other === "en" ? "English" : "中文"}</button>`;
}
