// The marks of a chart: lines where something happened, their words above the drawing, and bands without the store.

import { gather, placeLabels } from "../lib/mark_labels.js";
import { html } from "./html.js";
import { BOLD, textWidth } from "./text_width.js";
import { w } from "./words.js";

const ROW = 14;
const MOST_ROWS = 4;
/** Marks of one kind this near to each other, in pixels, share their words. */
const NEAR = 10;

/**
 * What is drawn of the marks of a chart, and the height of their words.
 * @param {object} props marks: as `marksOf` gives them; x: the place of a time; key: the width of the panel's name, which has the lowest row
 */
export function layoutMarks({ marks, x, begin, end, left, width, key }) {
  const shown = marks.filter((mark) => (mark.until ? mark.until > begin : mark.at > begin) && mark.at < end);
  const near = (NEAR * (end - begin)) / (width - left);
  const groups = gather([...shown].sort((a, b) => a.at - b.at).map((mark) => ({ ...mark, at: Math.max(begin, mark.at) })), near);
  const items = groups.map((group) => {
    const [first] = group.members;
    const n = group.members.length;
    const words = n === 1 ? first.words : first.several ? w(first.several, { n }) : `${group.members.at(-1).words} ×${n}`;
    return { ...first, words, place: Math.round(x(group.at)) + 0.5, x: x(group.at), wide: textWidth(words), title: group.members.map((mark) => mark.title ?? mark.words).join("\n") };
  });
  const places = placeLabels(items, { from: left, to: width, rows: MOST_ROWS, taken: [left, left + key] });
  const rows = 1 + Math.max(0, ...places.map((place) => place?.row ?? 0));
  return { items: items.map((item, i) => ({ ...item, label: places[i] })), rows: rows - 1, height: (rows - 1) * ROW, taken: [left, left + key] };
}

/** Lines and bands, behind everything. `top` is the line of the lowest row of words. */
export function MarkLines({ layout, x, end, top, bottom }) {
  return layout.items.map((item) => {
    if (item.until) {
      const to = x(Math.min(end, item.until));
      return html`<g><rect class="out" x=${item.x.toFixed(1)} y=${top} width=${Math.max(1, to - item.x).toFixed(1)} height=${bottom - top} />
        <line class="out-edge" x1=${item.x.toFixed(1)} x2=${item.x.toFixed(1)} y1=${poleTop(item, top)} y2=${bottom} /></g>`;
    }
    const isUnderName = item.x < layout.taken[1] + 4;
    return html`<g>${isUnderName && item.label?.row > 0 && html`<line class="mark" x1=${item.place} x2=${item.place} y1=${poleTop(item, top)} y2=${top - 12} />`}
      <line class="mark" x1=${item.place} x2=${item.place} y1=${isUnderName || !item.label ? top + 4 : poleTop(item, top)} y2=${bottom} /></g>`;
  });
}

const poleTop = (item, top) => (item.label ? top - 10 - item.label.row * ROW : top + 4);

/** The words of marks; each mark has them in its title, too. */
export function MarkWords({ layout, top, bottom }) {
  return layout.items.map((item) => html`<g><title>${item.title}</title>
    <line class="touch" x1=${item.place} x2=${item.place} y1=${top - 10} y2=${bottom} />
    ${item.label && html`<text class="mark-t" x=${(item.label.from + (item.label.isLeft ? item.wide : 0)).toFixed(1)} y=${top - item.label.row * ROW} text-anchor=${item.label.isLeft ? "end" : "start"}>${item.words}</text>`}</g>`);
}

/** Names the rise where it is seen, above its bars. `y` is the line of the panel's name, which ends at `after`. */
export function Onset({ onset, x, begin, y, bottom, after, width, layout }) {
  if (!onset || onset.at <= begin) return null;
  const at = Math.round(x(onset.at)) - 0.5;
  const wide = textWidth(onset.words) * BOLD;
  // Left of its line, right of it, or where the row has room, and rather where no mark's line crosses it.
  const crossed = (each) => layout.items.some((item) => item.x > each - 2 && item.x < each + wide + 2);
  const places = [at - 6 - wide, at + 6, width - wide].filter((each) => each >= after && each + wide <= width);
  const from = places.find((each) => !crossed(each)) ?? places[0];
  const isBeside = from !== undefined && (from === at + 6 || from === at - 6 - wide);
  return html`<g class=${onset.tone ?? "denied"}><title>${onset.words}</title><line class="onset" x1=${at} x2=${at} y1=${isBeside ? y - 10 : y + 6} y2=${bottom} />
    ${from !== undefined && html`<text class="onset-t" x=${from.toFixed(1)} y=${y}>${onset.words}</text>`}</g>`;
}
