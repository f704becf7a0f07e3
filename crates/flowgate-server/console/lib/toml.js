// TOML for the eye: the pieces of a line with their kinds, the place of a finding, the blocks of rules.

import { unitOfColumn } from "./text.js";

/** The pieces of one line: `{ kind: "head" | "key" | "comment" | "text", text }`. */
export function pieces(line) {
  const comment = commentStart(line);
  const [code, rest] = [line.slice(0, comment), line.slice(comment)];
  const out = [];
  const key = /^(\s*)((?:[\w.-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*)(?=\s*=)/.exec(code);
  if (/^\s*\[/.test(code) && /\]\s*$/.test(code) && !key) out.push({ kind: "head", text: code });
  else if (key) {
    if (key[1]) out.push({ kind: "text", text: key[1] });
    out.push({ kind: "key", text: key[2] });
    if (code.length > key[0].length) out.push({ kind: "text", text: code.slice(key[0].length) });
  } else if (code) out.push({ kind: "text", text: code });
  if (rest) out.push({ kind: "comment", text: rest });
  return out;
}

/** Where the comment of a line begins; its length without one. */
function commentStart(line) {
  let quote = null;
  for (let i = 0; i < line.length; i += 1) {
    const c = line[i];
    if (quote) {
      if (c === "\\" && quote === '"') i += 1;
      else if (c === quote) quote = null;
    } else if (c === '"' || c === "'") quote = c;
    else if (c === "#") return i;
  }
  return line.length;
}

/** The part of a line that a finding at `column` (characters, from 1) means, as UTF-16 units `[from, to]`. */
export function markAt(line, column) {
  const from = Math.min(unitOfColumn(line, column), line.length);
  const word = /^(?:"(?:\\.|[^"\\])*"?|'[^']*'?|[\p{L}\p{N}_.-]+|\S)/u.exec(line.slice(from));
  if (word) return [from, from + word[0].length];
  // Nothing stands there: the last word of the line is meant.
  const last = /\S+\s*$/.exec(line);
  return last ? [last.index, last.index + last[0].trimEnd().length] : [0, line.length];
}

/** The pieces of a line, cut at the marks `{ from, to, severity }`, each with the severity of its mark or none. */
export function painted(line, marks) {
  const out = [];
  let at = 0;
  for (const piece of pieces(line)) {
    const end = at + piece.text.length;
    const cuts = [at, ...marks.flatMap((mark) => [mark.from, mark.to]).filter((cut) => cut > at && cut < end), end].sort((a, b) => a - b);
    for (let i = 0; i + 1 < cuts.length; i += 1) {
      if (cuts[i] === cuts[i + 1]) continue;
      const mark = marks.find((each) => each.from <= cuts[i] && each.to >= cuts[i + 1]);
      out.push({ kind: piece.kind, text: line.slice(cuts[i], cuts[i + 1]), mark: mark?.severity });
    }
    at = end;
  }
  return out;
}

/** The blocks `[[rule]]` of a text: `{ name, from, to }`, lines from 0, `to` exclusive, without trailing empty lines. */
export function ruleBlocks(text) {
  const all = text.split("\n");
  const heads = all.flatMap((line, i) => (/^\s*\[/.test(line) && !/^\s*\[\[?["'\d]/.test(line) ? [i] : []));
  return heads.flatMap((from, i) => {
    if (!/^\s*\[\[\s*rule\s*\]\]/.test(all[from])) return [];
    let to = heads[i + 1] ?? all.length;
    // Comments right above the next block are its own.
    while (to > from + 1 && /^\s*(#.*)?$/.test(all[to - 1])) to -= 1;
    const name = all.slice(from, to).map((line) => /^\s*name\s*=\s*["']([^"']*)["']/.exec(line)?.[1]).find(Boolean);
    return [{ name: name ?? null, from, to }];
  });
}

/** The text with `key = value` in the block of that rule: its line is replaced, or added at the end. Null: no such rule. */
export function withKey(text, rule, key, value) {
  const block = ruleBlocks(text).find((each) => each.name === rule);
  if (!block) return null;
  const all = text.split("\n");
  const at = all.findIndex((line, i) => i > block.from && i < block.to && new RegExp(`^\\s*${key}\\s*=`).test(line));
  if (value === null) {
    if (at >= 0) all.splice(at, 1);
    return all.join("\n");
  }
  if (at >= 0) {
    all[at] = all[at].replace(/=.*$/, `= ${value}`);
  } else {
    const width = Math.max(key.length, ...all.slice(block.from + 1, block.to).map((line) => /^(\w+\s*)=/.exec(line)?.[1].length - 1 || 0));
    all.splice(block.to, 0, `${key.padEnd(width)} = ${value}`);
  }
  return all.join("\n");
}

/** The first count of that rule's `limits`. Null where it cannot be found. */
export function firstCount(text, rule) {
  const block = ruleBlocks(text).find((each) => each.name === rule);
  const line = block && text.split("\n").slice(block.from, block.to).find((each) => /^\s*limits\s*=/.test(each));
  const found = line && /["'](?:\w+\s+)?([\d_.]+)\s*\//.exec(line);
  return found ? Number(found[1].replaceAll("_", "")) : null;
}

/** The text with the first count of that rule's `limits` replaced. Null where it cannot be found. */
export function withCount(text, rule, count) {
  const block = ruleBlocks(text).find((each) => each.name === rule);
  if (!block) return null;
  const all = text.split("\n");
  const at = all.findIndex((line, i) => i > block.from && i < block.to && /^\s*limits\s*=/.test(line));
  if (at < 0) return null;
  const changed = all[at].replace(/(["'](?:\w+\s+)?)([\d_.]+)(\s*\/)/, (_, before, __, after) => `${before}${count}${after}`);
  if (changed === all[at]) return null;
  all[at] = changed;
  return all.join("\n");
}
