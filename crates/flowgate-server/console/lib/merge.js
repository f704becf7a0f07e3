// Three texts by lines: a base and two that were made from it, yours and theirs.

import { lines, runs } from "./diff.js";

/**
 * The parts of the three texts, in order, gapless. Each is `{ kind, base, yours, theirs }` with lists of lines:
 *   same      nobody changed it
 *   yours     only you did
 *   theirs    only they did
 *   both      both did the same
 *   conflict  both did, differently
 */
export function merge(base, yours, theirs) {
  const [b, y, t] = [lines(base), lines(yours), lines(theirs)];
  const changes = [
    ...runs(b, y).filter((run) => !run.same).map((run) => ({ ...run, side: "yours" })),
    ...runs(b, t).filter((run) => !run.same).map((run) => ({ ...run, side: "theirs" })),
  ].sort((left, right) => left.a[0] - right.a[0] || left.a[1] - right.a[1]);
  const out = [];
  // How far the other texts are shifted against the base at this point.
  const shift = { yours: 0, theirs: 0 };
  let at = 0;
  const part = (from, to, group) => {
    const slice = (side, text) => {
      const own = group.filter((change) => change.side === side);
      const grown = own.reduce((sum, change) => sum + (change.b[1] - change.b[0]) - (change.a[1] - change.a[0]), 0);
      const found = text.slice(from + shift[side], to + shift[side] + grown);
      shift[side] += grown;
      return found;
    };
    return { base: b.slice(from, to), yours: slice("yours", y), theirs: slice("theirs", t) };
  };
  for (let i = 0; i < changes.length; ) {
    const group = [changes[i]];
    let [from, to] = changes[i].a;
    for (i += 1; i < changes.length && touches(changes[i], to, group); i += 1) {
      group.push(changes[i]);
      to = Math.max(to, changes[i].a[1]);
    }
    if (from > at) out.push({ kind: "same", ...part(at, from, []) });
    const found = part(from, to, group);
    out.push({ kind: kindOf(found, group), ...found });
    at = to;
  }
  if (at < b.length) out.push({ kind: "same", ...part(at, b.length, []) });
  return out;
}

/** Changes of the two sides that overlap belong together, and insertions at the same place. */
function touches(change, to, group) {
  return change.a[0] < to || (change.a[0] === to && group.some((other) => other.side !== change.side && (other.a[0] === other.a[1] || change.a[0] === change.a[1])));
}

function kindOf(part, group) {
  const sides = new Set(group.map((change) => change.side));
  if (sides.size === 1) return group[0].side;
  return part.yours.join("\n") === part.theirs.join("\n") ? "both" : "conflict";
}

/**
 * The text that the choices make: one per part that they changed, `"theirs"` or `"yours"` (also `"both"` in a conflict).
 * Null while a choice is missing.
 */
export function resolved(parts, choices) {
  const out = [];
  for (const [index, part] of parts.entries()) {
    const choice = part.kind === "theirs" || part.kind === "conflict" ? choices.get(index) : "yours";
    if (!choice) return null;
    if (choice === "both") out.push(...part.yours, ...part.theirs);
    else if (choice === "yours" && part.kind === "theirs") out.push(...part.base);
    else out.push(...part[choice]);
  }
  return out.length ? `${out.join("\n")}\n` : "";
}
