// The difference of two texts by lines (Myers), and of two lines by words.

/** Steps beyond which two texts count as wholly different: a difference of that size helps nobody, and costs its square. */
const MAX_STEPS = 4000;

/** Runs of equal and changed elements: `[{ same, a: [from, to], b: [from, to] }]`, in order, gapless. */
export function runs(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA -= 1;
    endB -= 1;
  }
  const out = [];
  push(out, true, 0, start, 0, start);
  for (const [same, fromA, toA, fromB, toB] of middle(a.slice(start, endA), b.slice(start, endB))) {
    push(out, same, fromA + start, toA + start, fromB + start, toB + start);
  }
  push(out, true, endA, a.length, endB, b.length);
  return out;
}

function push(out, same, fromA, toA, fromB, toB) {
  if (fromA === toA && fromB === toB) return;
  const last = out[out.length - 1];
  if (last && last.same === same) {
    last.a[1] = toA;
    last.b[1] = toB;
  } else {
    out.push({ same, a: [fromA, toA], b: [fromB, toB] });
  }
}

/** Myers: the shortest way from `a` to `b`, found diagonal by diagonal and walked back. */
function middle(a, b) {
  const [n, m] = [a.length, b.length];
  if (!n || !m) return n || m ? [[false, 0, n, 0, m]] : [];
  const most = Math.min(n + m, MAX_STEPS);
  const offset = most + 1;
  const reach = new Int32Array(2 * most + 3);
  const trail = [];
  for (let step = 0; step <= most; step += 1) {
    trail.push(reach.slice(offset - step - 1, offset + step + 2));
    for (let k = -step; k <= step; k += 2) {
      const down = k === -step || (k !== step && reach[offset + k - 1] < reach[offset + k + 1]);
      let x = down ? reach[offset + k + 1] : reach[offset + k - 1] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x += 1;
      reach[offset + k] = x;
      if (x >= n && x - k >= m) return walkBack(trail, step, n, m);
    }
  }
  return [[false, 0, n, 0, m]];
}

function walkBack(trail, steps, n, m) {
  const out = [];
  let [x, y] = [n, m];
  for (let step = steps; step > 0; step -= 1) {
    const reach = trail[step];
    const at = (k) => reach[k + step + 1];
    const k = x - y;
    const down = k === -step || (k !== step && at(k - 1) < at(k + 1));
    const fromX = down ? at(k + 1) : at(k - 1);
    const fromY = fromX - (down ? k + 1 : k - 1);
    const [midX, midY] = down ? [fromX, fromY + 1] : [fromX + 1, fromY];
    if (x > midX) out.push([true, midX, x, midY, y]);
    out.push([false, fromX, midX, fromY, midY]);
    [x, y] = [fromX, fromY];
  }
  if (x > 0) out.push([true, 0, x, 0, y]);
  return out.reverse();
}

/** The lines of a text. A last line without a newline is a line, too. */
export function lines(text) {
  const all = text.split("\n");
  if (all[all.length - 1] === "") all.pop();
  return all;
}

/**
 * The difference of two texts as rows: `{ kind: "same" | "out" | "ins", a, b, text }`, line numbers from 1.
 * Removed lines come before the added ones of the same place.
 */
export function rows(before, after) {
  const [a, b] = [lines(before), lines(after)];
  const out = [];
  for (const run of runs(a, b)) {
    if (run.same) {
      for (let i = 0; i < run.a[1] - run.a[0]; i += 1) {
        out.push({ kind: "same", a: run.a[0] + i + 1, b: run.b[0] + i + 1, text: a[run.a[0] + i] });
      }
      continue;
    }
    for (let i = run.a[0]; i < run.a[1]; i += 1) out.push({ kind: "out", a: i + 1, text: a[i], pair: b[run.b[0] + i - run.a[0]] });
    for (let i = run.b[0]; i < run.b[1]; i += 1) out.push({ kind: "ins", b: i + 1, text: b[i], pair: a[run.a[0] + i - run.b[0]] });
    pairUp(out, run);
  }
  return out;
}

/** Only lines that face each other are compared by words; a line beyond the other side has no pair. */
function pairUp(out, run) {
  const [removed, added] = [run.a[1] - run.a[0], run.b[1] - run.b[0]];
  const changed = out.slice(out.length - removed - added);
  changed.forEach((row, i) => {
    const index = row.kind === "out" ? i : i - removed;
    if (index >= Math.min(removed, added)) row.pair = undefined;
  });
}

/** How many lines a difference adds and removes. */
export function counts(rowList) {
  return {
    added: rowList.filter((row) => row.kind === "ins").length,
    removed: rowList.filter((row) => row.kind === "out").length,
  };
}

/** Rows with long runs of equal lines folded: `{ kind: "skip", lines }`; `around` equal lines stay at each change. */
export function folded(rowList, around = 2) {
  const out = [];
  for (let i = 0; i < rowList.length; ) {
    if (rowList[i].kind !== "same") {
      out.push(rowList[i]);
      i += 1;
      continue;
    }
    let end = i;
    while (end < rowList.length && rowList[end].kind === "same") end += 1;
    const head = i === 0 ? 0 : around;
    const tail = end === rowList.length ? 0 : around;
    if (end - i <= head + tail + 1) {
      out.push(...rowList.slice(i, end));
    } else {
      out.push(...rowList.slice(i, i + head), { kind: "skip", lines: end - i - head - tail }, ...rowList.slice(end - tail, end));
    }
    i = end;
  }
  return out;
}

/** The pieces of `line`, each `{ text, changed }`, against the line `other` that it replaces or that replaces it. */
export function words(line, other) {
  if (other === undefined) return [{ text: line, changed: false }];
  const split = (text) => text.match(/[\p{L}\p{N}_.-]+|\s+|./gu) ?? [];
  const [a, b] = [split(line), split(other)];
  // Spaces that only align what follows are no change.
  const plain = (list) => list.map((each) => (/^\s/.test(each) ? " " : each));
  const pieces = runs(plain(a), plain(b)).filter((run) => run.a[1] > run.a[0]).map((run) => ({ text: a.slice(...run.a).join(""), changed: !run.same }));
  // Lines that share nearly nothing are plainer as whole lines.
  const same = pieces.filter((piece) => !piece.changed).reduce((sum, piece) => sum + piece.text.trim().length, 0);
  return same * 3 < line.trim().length ? [{ text: line, changed: false }] : pieces;
}
