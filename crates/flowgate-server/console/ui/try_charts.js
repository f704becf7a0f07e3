// The charts of Try: denied over time under both policies, and what other counts would have denied.

import { tick } from "../lib/history.js";
import { useState } from "../vendor/hooks.js";
import { Card } from "./basics.js";
import { html } from "./html.js";
import { Legend } from "./small_drawings.js";
import { useWidth } from "./use_width.js";
import { f, w } from "./words.js";

const H = 214;
const [TOP, BOTTOM] = [40, 20];
/** From here on words have room left of a line. */
const LEFT_WORDS = 120;

/** A chart with its legend, and its numbers "as a table": `heads` and `rows` of cells, the first of each row a name. */
export function ChartCard({ title, legend, heads, rows, foot, children }) {
  const [asTable, setAsTable] = useState(false);
  const head = html`<${Legend} of=${legend} /><button type="button" class="b bare" aria-pressed=${String(asTable)} onClick=${() => setAsTable(!asTable)}>${asTable ? w("chart.drawn") : w("chart.table")}</button>`;
  const table = () => html`<div class="scroll" tabindex="0" role="region" aria-label=${`${title}${w("colon")}${w("chart.table")}`}><table class="t"><thead><tr>${heads.map((words, i) => html`<th class=${i ? "r" : ""}>${words}</th>`)}</tr></thead>
    <tbody>${rows().map((row) => html`<tr key=${row[0]}>${row.map((cell, i) => html`<td class=${i ? "r" : ""}>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
  return html`<${Card} title=${title} head=${head}><div class="pad">${asTable ? table() : children}${foot && html`<p class="label mt2">${foot}</p>`}</div></${Card}>`;
}

/** The time of a period of a replay. */
const timeOf = (each) => f().clock(Date.parse(each.start) / 1000, true);

/** What is denied in each period, in force and by the draft. */
export const timelineRows = (before, after) => after.map((each, i) => [timeOf(each), f().num(before[i]?.denied ?? 0), f().num(each.denied)]);

/** What each count would have denied. */
export const curveRows = (curve) => curve.points.map((point) => [point.count, f().num(point.requests), f().num(point.subjects)]);

function axis(most) {
  const step = Math.max(1, tick(most));
  return { step, top: Math.max(step, Math.ceil(most / step) * step) };
}

/** Denied requests per period: the draft as bars, what is in force as a line. */
export function TimelineChart({ before, after }) {
  const [ref, width] = useWidth();
  const left = 40;
  const count = Math.max(before.length, after.length, 1);
  const scale = axis(Math.max(...before.map((each) => each.denied), ...after.map((each) => each.denied), 1));
  const x = (i) => left + ((width - left) * i) / count;
  const y = (value) => H - BOTTOM - ((H - TOP - BOTTOM) * value) / scale.top;
  const bar = (width - left) / count;
  const line = (list) => list.map((each, i) => `${x(i + 0.5).toFixed(1)},${y(each.denied).toFixed(1)}`).join(" ");
  const path = (list) => list.map((each, i) => (each.denied ? `M${x(i).toFixed(2)} ${y(0)}V${Math.min(y(each.denied), y(0) - 1).toFixed(1)}h${Math.max(0.5, bar - (bar > 3 ? 1 : 0.3)).toFixed(2)}V${y(0)}z` : "")).join("");
  const ticks = Array.from({ length: Math.round(scale.top / scale.step) }, (_, i) => (i + 1) * scale.step);
  return html`<div class="chart" ref=${ref}>${width > 0 && html`<svg viewBox=${`0 0 ${width} ${H}`} width=${width} height=${H} role="img" tabindex="0" aria-label=${w("rule.chart")}>
    ${ticks.map((value) => html`<line class="grid" x1=${left} x2=${width} y1=${y(value)} y2=${y(value)} /><text x=${left - 8} y=${y(value) + 4} text-anchor="end">${f().num(value)}</text>`)}
    <text x=${left - 8} y=${y(0) + 4} text-anchor="end">0</text>
    <path class="bars" d=${path(after)} /><polyline class="halo" points=${line(before)} /><polyline class="edge" points=${line(before)} />
    <line class="base" x1=${left} x2=${width} y1=${y(0) + 0.5} y2=${y(0) + 0.5} />
    <text x=${left} y="12"><tspan class="what">${w("denied")}</tspan></text>
    ${after.length > 0 && html`<text x=${left} y=${H - 3}>${timeOf(after[0])}</text><text x=${width} y=${H - 3} text-anchor="end">${timeOf(after[after.length - 1])}</text>`}
  </svg>`}</div>`;
}

const percentTick = (share) => (Number.isInteger(Math.round(share * 1e6) / 1e4) ? f().percent(share, 1).replace(/[.,]0/, "") : f().percent(share, 1));

/** The place of a count among those of the points, texts that lie ever farther apart; null: beyond them. */
function placeOf(count, points) {
  const counts = points.map((point) => Number(point.count));
  const after = counts.findIndex((each) => each >= count);
  if (count === null || after < 0 || counts[0] > count) return null;
  return counts[after] === count ? after : after - 1 + (count - counts[after - 1]) / (counts[after] - counts[after - 1]);
}

/** What a count does to 99.9 % of subjects is told of so many at least. A rule that counts all together tells of requests. */
const LEAST_SUBJECTS = 100;
export const isTelling = (curve) => !curve.by.length || curve.subjects >= LEAST_SUBJECTS;

/** The share of requests and of subjects that each count would have denied. `draft`: the count of the draft, or null. */
export function CurveChart({ curve, draft }) {
  const [ref, width] = useWidth();
  const left = 46;
  const points = curve.points;
  const last = Math.max(1, points.length - 1);
  const share = (point) => (curve.requests ? point.requests / curve.requests : 0);
  const shareOf = (point) => (curve.subjects ? point.subjects / curve.subjects : 0);
  const most = Math.max(...points.map(share), ...points.map(shareOf), 0.01);
  const step = tick(most * 100) / 100;
  const x = (i) => left + ((width - left - 12) * i) / last;
  const y = (value) => H - BOTTOM - ((H - TOP - BOTTOM) * value) / most;
  const line = (of) => points.map((point, i) => `${x(i).toFixed(1)},${y(of(point)).toFixed(1)}`).join(" ");
  const ticks = Array.from({ length: Math.floor(most / step + 1e-9) }, (_, i) => (i + 1) * step);
  const every = Math.max(1, Math.ceil(points.length / 8));
  const drafted = draft === Number(points[curve.configured]?.count) ? null : placeOf(draft, points);
  // Words stand right of their line, and left of it where there is no room or the line of another follows.
  const upright = (i, tone, textTone, words, line, next = null) => {
    const left = x(i) > width - 130 || (next !== null && next > i && x(i) > LEFT_WORDS);
    return html`<g class="upright"><line class=${tone} x1=${x(i)} x2=${x(i)} y1="12" y2=${y(0)} /><text class=${textTone} x=${left ? x(i) - 5 : x(i) + 5} y=${line} text-anchor=${left ? "end" : "start"}>${words}</text></g>`;
  };
  return html`<div class="chart" ref=${ref}>${width > 0 && html`<svg viewBox=${`0 0 ${width} ${H}`} width=${width} height=${H} role="img" tabindex="0" aria-label=${w("try.curve", { rule: curve.rule })}>
    ${ticks.map((value) => html`<line class="grid" x1=${left} x2=${width} y1=${y(value)} y2=${y(value)} /><text x=${left - 8} y=${y(value) + 4} text-anchor="end">${percentTick(value)}</text>`)}
    <line class="base" x1=${left} x2=${width} y1=${y(0) + 0.5} y2=${y(0) + 0.5} />
    ${points.map((point, i) => (i % every === 0 ? html`<text x=${x(i)} y=${H - 3} text-anchor="middle">${point.count}</text>` : null))}
    <polyline class="curve2" points=${line(shareOf)} /><polyline class="curve" points=${line(share)} />
    ${upright(curve.configured, drafted === null ? "conf" : "mark", "what", w("try.configured", { count: points[curve.configured]?.count }), 20, drafted)}
    ${drafted !== null && upright(drafted, "conf", "what", w("try.draftCount", { count: draft }), 34, curve.configured)}
    ${isTelling(curve) && points[curve.spares] && upright(curve.spares, "spares", "good", w("try.spares", { count: points[curve.spares].count }), 48)}
    ${points.map((point, i) => html`<circle class="dot" cx=${x(i)} cy=${y(share(point))} r="3.5" />`)}
  </svg>`}</div>`;
}
