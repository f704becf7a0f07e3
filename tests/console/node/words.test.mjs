// Both tables have the same keys and the same gaps, none is empty, and every key that the pages name is there.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { fill, gaps } from "../../../crates/flowgate-server/console/lib/words.js";
import en from "../../../crates/flowgate-server/console/words/en.js";
import zh from "../../../crates/flowgate-server/console/words/zh.js";
import answers from "../../../crates/flowgate-server/console/words/zh_answers.js";

const CONSOLE = new URL("../../../crates/flowgate-server/console/", import.meta.url);

test("both languages have the same keys", () => assert.deepEqual(Object.keys(en).sort(), Object.keys(zh).sort()));

test("no sentence is empty", () => {
  for (const table of [en, zh]) for (const [key, sentence] of Object.entries(table)) assert.ok(sentence.trim() || key === "listComma", key);
});

test("a Chinese sentence has no gap that the English one lacks, and drops only numbers of a plural", () => {
  for (const key of Object.keys(en)) {
    const [english, chinese] = [gaps(en[key]), gaps(zh[key])];
    assert.deepEqual(chinese.filter((gap) => !english.includes(gap)), [], key);
    const plural = new Set([...en[key].matchAll(/\{(\w+)\|/g)].map((found) => found[1]));
    assert.deepEqual(english.filter((gap) => !chinese.includes(gap) && !plural.has(gap)), [], key);
  }
});

test("one thing has one Chinese word", () => {
  for (const [key, sentence] of Object.entries(zh)) for (const other of ["对象", "阈值"]) assert.ok(!sentence.includes(other), key);
});

test("every key that the source names is in the tables", () => {
  const files = ["pages", "ui"].flatMap((folder) => readdirSync(new URL(folder, CONSOLE)).map((name) => `${folder}/${name}`));
  for (const file of [...files, "main.js"]) {
    const source = readFileSync(new URL(file, CONSOLE), "utf8");
    for (const [, key] of source.matchAll(/\bwx?\("([^"]+)"/g)) assert.ok(key in en, `${file}: ${key}`);
  }
});

/** The text from an opening parenthesis to the one that closes it. */
function callAt(source, from) {
  let depth = 0;
  for (const { 0: piece, index } of source.slice(from).matchAll(/"(?:[^"\\]|\\[^])*"|[()]/g)) {
    depth += piece === "(" ? 1 : piece === ")" ? -1 : 0;
    if (depth === 0) return source.slice(from, from + index + 1);
  }
  return "";
}

/** The codes of the server's source with the names of their values. */
function codesOfServer() {
  const crates = new URL("../../../crates/", import.meta.url);
  const sources = ["flowgate-engine/src/", "flowgate-server/src/"].flatMap((folder) => readdirSync(new URL(folder, crates), { recursive: true }).filter((name) => name.endsWith(".rs")).map((name) => readFileSync(new URL(folder + name, crates), "utf8")));
  const all = new Map();
  for (const source of sources) {
    for (const { index } of source.matchAll(/\bcoded!\(/g)) {
      const call = callAt(source, index + "coded!".length);
      const [, code] = /^\(\s*"([a-z-]*)"/.exec(call) ?? [];
      if (code !== undefined) all.set(code, [...call.replace(/"(?:[^"\\]|\\[^])*"/g, "").matchAll(/\b(\w+) = /g)].map((found) => found[1]));
    }
    // The table of errors, and the codes of parts of a limit.
    for (const [, code] of source.matchAll(/(?:=>\s*\{?\s*\(?|\\"code\\":\\)"([a-z]+(?:-[a-z]+)*)\\?"/g)) if (!all.has(code)) all.set(code, null);
  }
  return all;
}

test("every sentence of the server in Chinese belongs to a code of the server, with its values", () => {
  const codes = codesOfServer();
  assert.ok(codes.size > 60);
  for (const [code, sentence] of Object.entries(answers)) {
    assert.ok(codes.has(code), code);
    const values = codes.get(code);
    if (values) assert.deepEqual(gaps(sentence).filter((gap) => !values.includes(gap)), [], code);
  }
});

test("every sentence with a code is said in Chinese", () => {
  const missing = [...codesOfServer()].filter(([code, values]) => values !== null && code !== "" && !(code in answers));
  assert.deepEqual(missing, []);
});

test("gaps are filled, with the number's form", () => {
  assert.equal(fill("{n} {n|rule|rules} of {all}", { n: 1, all: 2 }), "1 rule of 2");
  assert.equal(fill("{n} {n|rule|rules}", { n: 3 }), "3 rules");
});
