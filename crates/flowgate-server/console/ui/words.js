// The words of the chosen language.

import { formats } from "../lib/format.js";
import { fill, parts } from "../lib/words.js";
import { language } from "../state/prefs.js";

const TABLES = new Map();
/** The sentences of the server by their code. English has none: the server speaks it. */
const ANSWERS = new Map();
const FORMATS = new Map();

const sentence = (key) => TABLES.get(language.get())[key] ?? key;

/** Loads the words of a language; the other language's stay away until they are asked for. */
export async function loadWords(name) {
  if (TABLES.has(name)) return;
  const [words, answers] = await Promise.all(name === "en" ? [import("../words/en.js")] : [import("../words/zh.js"), import("../words/zh_answers.js")]);
  ANSWERS.set(name, new Map(Object.entries(answers?.default ?? {})));
  TABLES.set(name, words.default);
}

/** The server's sentences in the chosen language, by code. */
export const answersOf = () => ANSWERS.get(language.get());

/** Changes the language, once its words are there. */
export async function changeLanguage(name) {
  await loadWords(name);
  language.set(name);
}

/** A sentence as text. */
export const w = (key, values) => fill(sentence(key), values);

/** A sentence with elements in its gaps. */
export const wx = (key, values) => parts(sentence(key), values);

/** What stands between two sentences: a Chinese full stop brings its own space. */
export const gap = () => (language.get() === "en" ? " " : "");

/** Numbers and times of the chosen language. */
export function f() {
  const name = language.get();
  if (!FORMATS.has(name)) FORMATS.set(name, formats(name));
  return FORMATS.get(name);
}
