// Where the words of a chart's marks stand: above the drawing, in rows, so that they cover nothing.
//
// A mark is a line that rises from the drawing up to the row of its words, like a flag on its pole. A pole crosses no words of the
// rows below its own, and no pole of a higher row crosses its words.

/** Between words and the poles and words beside them, in pixels. */
const GAP = 6;

/** Of many marks, so many of the newest are tried as the ends of a part. */
const TRIED = 8;

/**
 * @param {{ x: number, wide: number }[]} marks places of the poles, from left to right, and the widths of their words
 * @param {{ from: number, to: number, rows: number, taken: [number, number] }} room the ends of the drawing, the number of rows, and
 *   the part of the lowest row that other words have
 * @returns {({ row: number, from: number, isLeft: boolean } | null)[]} where the words of each mark begin; row 0 is the lowest, and `isLeft` that they end at their pole. Null: there is no room.
 */
export function placeLabels(marks, room) {
  // The words of the marks before a split stand at the left of their poles, those of the others at the right: that way a crowd needs
  // the fewest rows. The split that gives words to the most marks is taken; of two the one that gives them to newer ones.
  const first = Math.max(0, marks.length - TRIED);
  let best = { score: -1, placed: [] };
  for (let split = marks.length; split >= first; split -= 1) {
    for (let kept = first; kept <= split; kept += 1) {
      const placed = attempt(marks, { before: first, kept, split }, room);
      const score = placed.reduce((sum, place, i) => sum + (place ? 1 + i / 1000 - place.row / 1e4 : 0), 0);
      if (score > best.score) best = { score, placed };
      if (placed.every(Boolean)) break;
    }
  }
  return best.placed;
}

/** `kept`: the first of the newest that has words before the older ones have. */
function attempt(marks, { before, kept, split }, { from, to, rows, taken }) {
  const words = [{ row: 0, from: taken[0], to: taken[1] }];
  const poles = [];
  const placed = new Array(marks.length).fill(null);
  const fits = (row, x, begin, end) => begin >= from && end <= to
    && words.every((each) => each.row !== row || end + GAP <= each.from || begin >= each.to + GAP)
    // The lowest row belongs to the names of the panels: a pole is drawn around them.
    && words.slice(1).every((each) => each.row >= row || x < each.from - GAP / 2 || x > each.to + GAP / 2)
    && poles.every((pole) => pole.row < row || pole.x < begin - GAP / 2 || pole.x > end + GAP / 2);
  const place = (i, isLeft) => {
    const { x, wide } = marks[i];
    const begin = isLeft ? x - GAP - wide : x + GAP;
    for (let row = 0; row < rows && !placed[i]; row += 1) {
      if (!fits(row, x, begin, begin + wide)) continue;
      placed[i] = { row, from: begin, isLeft };
      words.push({ row, from: begin, to: begin + wide });
      poles.push({ row, x });
    }
  };
  // At the left, what stands further right rises higher; at the right, what stands further left.
  for (let i = 0; i < split; i += 1) if (i < before || i >= kept) place(i, true);
  for (let i = marks.length - 1; i >= split; i -= 1) place(i, false);
  for (let i = marks.length - 1; i >= 0; i -= 1) placed[i] ?? place(i, i >= split);
  return placed;
}

/**
 * Marks of the same kind that stand nearer than `near` to the one before become one with `count`; the others stay as they are.
 * @param {{ at: number, kind: string }[]} marks in the order of time
 */
export function gather(marks, near) {
  const out = [];
  const last = new Map();
  for (const mark of marks) {
    const group = last.get(mark.kind);
    if (group && mark.at - group.last <= near) {
      group.members.push(mark);
      group.last = mark.at;
      continue;
    }
    const next = { at: mark.at, kind: mark.kind, last: mark.at, members: [mark] };
    last.set(mark.kind, next);
    out.push(next);
  }
  return out;
}
