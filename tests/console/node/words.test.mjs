// Both tables have the same keys and the same gaps, none is empty, and every key that the pages name is there.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { fill, gaps } from "../../../crates/flowgate-server/console/lib/words.js";
import en from "../../../crates/flowgate-server/console/words/en.js";
import zh from "../../../crates/flowgate-server/console/words/zh.js";

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

test("gaps are filled, with the number's form", () => {
  assert.equal(fill("{n} {n|rule|rules} of {all}", { n: 1, all: 2 }), "1 rule of 2");
  assert.equal(fill("{n} {n|rule|rules}", { n: 3 }), "3 rules");
});
