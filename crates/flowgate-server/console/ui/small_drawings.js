// Small drawings: shares in tables, sparks, bars of limits. All by attributes; the policy forbids inline styles.

import { html } from "./html.js";

/** A share of the largest row. */
export function Share({ of, tone = "" }) {
  const width = of > 0 ? Math.max(0.02, Math.min(1, of)) * 72 : 0;
  return html`<svg class=${`share ${tone}`} viewBox="0 0 72 6" preserveAspectRatio="none" aria-hidden="true">
    <rect class="rest" width="72" height="6" rx="1" /><rect width=${width.toFixed(1)} height="6" rx="1" /></svg>`;
}

const POINTS = 30;
const [W, H] = [96, 24];

/** The list in `POINTS` means; null counts as nothing. */
function thin(list) {
  const size = list.length / POINTS;
  return Array.from({ length: POINTS }, (_, i) => {
    const part = list.slice(Math.floor(i * size), Math.max(Math.floor(i * size) + 1, Math.floor((i + 1) * size)));
    return part.reduce((sum, value) => sum + (value ?? 0), 0) / part.length;
  });
}

/**
 * An hour of a rule. Full height is a tenth of what it saw, or its own peak if that is more, so that a rule that denies
 * 0.1 % does not look like an attack.
 */
export function Spark({ denied, allowed, shadow = false, area = true }) {
  const values = thin(denied);
  const seen = thin(allowed);
  const back = area ? seen : null;
  const floor = Math.max(...seen.map((value, i) => value + (shadow ? 0 : values[i]))) / 10;
  const most = Math.max(...values, floor, 1e-9);
  const backMost = back && Math.max(...back) * 1.25;
  const x = (i) => ((i * W) / (POINTS - 1)).toFixed(1);
  return html`<svg class="spark" viewBox=${`0 0 ${W} ${H}`} preserveAspectRatio="none" aria-hidden="true">
    ${backMost > 0 && html`<polygon class="area" points=${`0,${H - 1} ${back.map((value, i) => `${x(i)},${(H - 1 - ((H - 3) * value) / backMost).toFixed(1)}`).join(" ")} ${W},${H - 1}`} />`}
    ${shadow
      ? values.some(Boolean) && html`<polyline class="dash" points=${values.map((value, i) => `${x(i)},${(H - 2 - ((H - 5) * value) / (most * 1.1)).toFixed(1)}`).join(" ")} />`
      : html`<path class="bars" d=${sparkBars(values, most)} />`}
    <line class="base" x1="0" x2=${W} y1=${H - 0.5} y2=${H - 0.5} />
  </svg>`;
}

function sparkBars(values, most) {
  const width = W / POINTS;
  return values.map((value, i) => (value > 0 ? `M${(i * width).toFixed(2)} ${H - 1}v-${Math.max(1, ((H - 3) * value) / most).toFixed(1)}h${(width + 0.05).toFixed(2)}V${H - 1}z` : "")).join("");
}

/** A line over time, for latencies; gaps stay gaps. */
export function SparkLine({ values }) {
  const most = Math.max(...values.filter((value) => value !== null), 1e-9) * 1.3;
  const runs = [];
  values.forEach((value, i) => {
    if (value === null) return runs.push([]);
    if (!runs.length) runs.push([]);
    runs[runs.length - 1].push(`${((i * W) / Math.max(1, values.length - 1)).toFixed(1)},${(H - 2 - ((H - 6) * value) / most).toFixed(1)}`);
  });
  return html`<svg class="spark" viewBox=${`0 0 ${W} ${H}`} preserveAspectRatio="none" aria-hidden="true">
    ${runs.filter((run) => run.length > 1).map((run) => html`<polyline class="edge" points=${run.join(" ")} />`)}
  </svg>`;
}

/** What is left of a limit. Nothing left: empty, orange edge. A ban: hatched, the time left. */
export function LimitBar({ left, most, ban = false }) {
  const width = Math.max(0, Math.min(1, most ? left / most : 0)) * 300;
  const empty = !ban && left <= 0;
  return html`<svg viewBox="0 0 300 8" preserveAspectRatio="none" aria-hidden="true">
    <rect class=${empty ? "zero" : ""} x=".5" y=".5" width="299" height="7" rx="2" vector-effect="non-scaling-stroke" />
    ${!empty && html`<rect class=${ban ? "none" : "left"} x=".5" y=".5" width=${Math.max(3, width - 1).toFixed(1)} height="7" rx="2" vector-effect="non-scaling-stroke" />`}
  </svg>`;
}

const KEYS = new Map([
  ["denied", html`<svg viewBox="0 0 14 10" aria-hidden="true"><path class="bars" d="M1 10V4h3v6zM5.5 10V0h3v10zM10 10V3h3v7z" /></svg>`],
  ["line", html`<svg viewBox="0 0 14 10" aria-hidden="true"><line class="edge" x1="0" x2="14" y1="5" y2="5" /></svg>`],
  ["curve", html`<svg viewBox="0 0 14 10" aria-hidden="true"><line class="curve" x1="0" x2="14" y1="5" y2="5" /></svg>`],
  ["curve2", html`<svg viewBox="0 0 14 10" aria-hidden="true"><line class="curve2" x1="0" x2="14" y1="5" y2="5" /></svg>`],
]);

/** The legend of a chart in which two things share a panel: pairs of a key and its words. */
export const Legend = ({ of }) => html`<ul class="legend">${of.map(([key, words]) => html`<li>${KEYS.get(key)}${words}</li>`)}</ul>`;
