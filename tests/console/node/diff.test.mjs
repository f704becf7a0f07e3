// Differences and merges of texts.

import assert from "node:assert/strict";
import test from "node:test";
import { counts, folded, rows, words } from "../../../crates/flowgate-server/console/lib/diff.js";
import { merge, resolved } from "../../../crates/flowgate-server/console/lib/merge.js";

/** The two texts again, from the rows of their difference. */
function rebuilt(list) {
  const side = (kind) => list.filter((row) => row.kind === "same" || row.kind === kind).map((row) => row.text).join("\n");
  return [side("out"), side("ins")];
}

test("a difference gives both texts back, and one changed line is one out and one in", () => {
  const before = "a\nb\nc\nd";
  assert.deepEqual(counts(rows(before, "a\nB\nc\nd")), { added: 1, removed: 1 });
  for (const after of ["", "a", "a\nb\nc\nd\ne", "d\nc\nb\na", "x\ny", "b\nc", before]) assert.deepEqual(rebuilt(rows(before, after)), [before, after].map((text) => text));
});

test("random texts are given back, and the difference is never longer than both", () => {
  let seed = 7;
  const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  for (let round = 0; round < 300; round += 1) {
    const text = () => Array.from({ length: random(12) }, () => "abc"[random(3)]).join("\n");
    const [before, after] = [text(), text()];
    const list = rows(before, after);
    assert.deepEqual(rebuilt(list), [before, after]);
    assert.ok(list.length <= before.split("\n").length + after.split("\n").length);
  }
});

test("long equal runs are folded, with two lines around each change", () => {
  const text = Array.from({ length: 20 }, (_, i) => String(i));
  const after = text.with(10, "x");
  assert.deepEqual(folded(rows(text.join("\n"), after.join("\n"))).map((row) => row.kind), ["skip", "same", "same", "out", "ins", "same", "same", "skip"]);
});

test("changed words are marked, spaces that only align are not", () => {
  assert.deepEqual(words('limits = ["5/60s"]', 'limit  = ["3/60s"]').filter((piece) => piece.changed).map((piece) => piece.text), ["limits", "5"]);
});

const BASE = "a\nb\nc\nd\ne\n";

test("changes at different places are both there after theirs is taken over", () => {
  const parts = merge(BASE, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
  assert.deepEqual(parts.map((part) => part.kind), ["yours", "same", "theirs"]);
  assert.equal(resolved(parts, new Map()), null);
  assert.equal(resolved(parts, new Map([[2, "theirs"]])), "A\nb\nc\nd\nE\n");
  assert.equal(resolved(parts, new Map([[2, "yours"]])), "A\nb\nc\nd\ne\n");
});

test("changes of the same line are a conflict; the same change is none", () => {
  const parts = merge(BASE, "a\nX\nc\nd\ne\n", "a\nY\nc\nd\ne\n");
  assert.deepEqual(parts.map((part) => part.kind), ["same", "conflict", "same"]);
  assert.equal(resolved(parts, new Map([[1, "both"]])), "a\nX\nY\nc\nd\ne\n");
  assert.deepEqual(merge(BASE, "a\nX\nc\nd\ne\n", "a\nX\nc\nd\ne\n").map((part) => part.kind), ["same", "both", "same"]);
});

test("taking all of one side gives that side's text, whatever the changes", () => {
  let seed = 11;
  const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  const edit = (list) => list.flatMap((line) => [[line], [], [line.toUpperCase()], [line, "new"], [line], [line]][random(6)]);
  const text = (list) => list.map((line) => `${line}\n`).join("");
  for (let round = 0; round < 300; round += 1) {
    const base = Array.from({ length: random(10) }, (_, i) => `line${i}`);
    const [yours, theirs] = [edit(base), edit(base)];
    const parts = merge(text(base), text(yours), text(theirs));
    assert.equal(parts.flatMap((part) => part.yours).join("\n"), yours.join("\n"));
    assert.equal(parts.flatMap((part) => part.theirs).join("\n"), theirs.join("\n"));
    assert.equal(parts.flatMap((part) => part.base).join("\n"), base.join("\n"));
  }
});
