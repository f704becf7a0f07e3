// Two panels on one time axis: allowed above, denied below on an axis of its own, never finer than 1 % of allowed's.
//
// Drawn at the width it has, one SVG unit to a pixel. Walked with the arrow keys; "as a table" shows the same numbers.

import { bars, tick, timeTick } from "../lib/history.js";
import { useState } from "../vendor/hooks.js";
import { Card } from "./basics.js";
import { layoutMarks, MarkLines, MarkWords, Onset } from "./chart_marks.js";
import { html } from "./html.js";
import { BOLD, textWidth } from "./text_width.js";
import { useWidth } from "./use_width.js";
import { f, w } from "./words.js";

const NARROW = 560;
const GAP = 32;
const TOP = 24;
/** From the line of a panel's name down to the panel. */
const NAME = 10;

/**
 * @param {object} props
 *   history  the answer of /v1/stats/history
 *   series   { allowed, denied?, own?, shadow? } lists of counts per step; { shadow } alone is one panel
 *   own      the word of what `own` counts: an action of a rule's own, such as captcha
 *   onset    { at, words, tone? } of the rise, or null
 *   title    of the card
 */
export function FlowCard({ title, history, series, own = null, onset = null, marks = [], heights = [78, 112] }) {
  const [asTable, setAsTable] = useState(false);
  const [ref, width] = useWidth();
  const narrow = width < NARROW;
  const steps = Object.values(series)[0].length;
  const grouped = bars({ step: history.step, end: history.end, length: steps }, Object.entries(series), narrow ? 60 : 180);
  const head = html`<span class="label wide">${w("chart.bar", { length: barLength(grouped.width) })}</span>
    <button type="button" class="b bare" aria-pressed=${String(asTable)} onClick=${() => setAsTable(!asTable)}>${asTable ? w("chart.drawn") : w("chart.table")}</button>`;
  return html`<${Card} title=${title} head=${head}>
    <div class="pad"><div class="chart" ref=${ref}>
      ${asTable
        ? html`<${ChartTable} grouped=${grouped} marks=${marks} own=${own} />`
        : width > 0 && html`<${Flow} label=${title} width=${width} narrow=${narrow} grouped=${grouped} own=${own} onset=${onset} marks=${marks} heights=${narrow ? [56, 84] : heights} />`}
    </div></div>
  </${Card}>`;
}

function barLength(seconds) {
  return seconds < 60 ? w("length.s", { n: seconds }) : seconds < 3600 ? w("length.min", { n: seconds / 60 }) : w("length.h", { n: seconds / 3600 });
}

function Flow({ label, width, narrow, grouped, own, onset, marks, heights }) {
  const [at, setAt] = useState(null);
  const { starts, values } = grouped;
  const left = narrow ? 30 : 40;
  // A rule in the shadow has one panel: what it would have denied.
  const alone = !values.has("allowed");
  const [begin, end] = [starts[0], starts[starts.length - 1] + grouped.width];
  const xOf = (time) => left + ((width - left) * (time - begin)) / (end - begin);
  const allowed = values.get("allowed") ?? [];
  const denied = values.get("denied") ?? null;
  const asked = values.get("own") ?? null;
  // What is asked for stands on top of what is denied.
  const both = denied && asked ? denied.map((value, i) => (value === null ? null : value + (asked[i] ?? 0))) : asked ?? denied ?? [];
  const shadow = alone || values.get("shadow")?.some(Boolean) ? values.get("shadow") : null;
  const most = (list) => Math.max(0, ...(list ?? []).map((value) => value ?? 0));
  const allowedTop = axis(most(allowed));
  const deniedMost = Math.max(most(both), most(shadow));
  const deniedTop = axis(Math.max(deniedMost || 1, allowedTop.top / 100));
  const unit = narrow ? "" : w("chart.perSecond");
  const lower = { what: alone ? w("chart.shadow") : denied ? w("denied") : own, unit: narrow ? "" : alone ? unit : w("chart.ownScale"), keys: [denied && asked && ["own", own], shadow && !alone && ["dash", w("chart.shadow")]].filter(Boolean) };
  // The words of marks stand above the first panel; in a chart of one panel the rise has the line of its name.
  const onsetRow = alone && onset ? GAP / 2 : 0;
  const key = onsetRow ? 0 : nameWidth(alone ? lower : { what: w("allowed"), unit });
  const layout = layoutMarks({ marks, x: xOf, begin, end, left, width, key });
  const top1 = TOP + layout.height + onsetRow;
  const top2 = alone ? top1 : top1 + heights[0] + GAP;
  const [base, height, markLine] = [top2 + heights[1], top2 + heights[1] + 20, top1 - NAME - onsetRow];
  const cursor = at === null ? null : Math.min(at, starts.length - 1);
  const move = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === "Escape") return setAt(null);
    if (event.key === "Home") setAt(0);
    else if (event.key === "End") setAt(starts.length - 1);
    else if (step) setAt(Math.max(0, Math.min(starts.length - 1, (cursor ?? starts.length - 1) + step)));
    else return undefined;
    return event.preventDefault();
  };
  const point = (event) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const index = Math.floor(((x - left) / (width - left)) * starts.length);
    setAt(index >= 0 && index < starts.length ? index : null);
  };
  return html`
    <svg viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="img" tabindex="0" aria-label=${`${label}. ${w("chart.keys")}`}
      onKeyDown=${move} onBlur=${() => setAt(null)} onPointerMove=${point} onPointerLeave=${() => setAt(null)}>
      <${MarkLines} layout=${layout} x=${xOf} end=${end} top=${markLine} bottom=${base} />
      ${cursor !== null && html`<rect class="cursor" x=${xOf(starts[cursor])} y=${markLine} width=${(width - left) / starts.length} height=${base - markLine} />`}
      ${!alone && html`<${Panel} y=${top1} height=${heights[0]} left=${left} width=${width} scale=${allowedTop} what=${w("allowed")} unit=${unit}>
        <${Area} values=${allowed} y=${top1} height=${heights[0]} left=${left} width=${width} top=${allowedTop.top} />
      </${Panel}>`}
      <${Panel} y=${top2} height=${heights[1]} left=${left} width=${width} scale=${deniedTop} ...${lower}>
        ${asked && html`<${Bars} tone="own" values=${both} y=${top2} height=${heights[1]} left=${left} width=${width} top=${deniedTop.top} />`}
        ${denied && html`<${Bars} values=${denied} y=${top2} height=${heights[1]} left=${left} width=${width} top=${deniedTop.top} />`}
        ${shadow && html`<${Dash} values=${shadow} y=${top2} height=${heights[1]} left=${left} width=${width} top=${deniedTop.top} />`}
      </${Panel}>
      <${Onset} onset=${onset} x=${xOf} begin=${begin} y=${top2 - NAME} bottom=${base} after=${left + nameWidth(lower)} width=${width} layout=${layout} />
      <${MarkWords} layout=${layout} top=${markLine} bottom=${base} />
      <${TimeAxis} begin=${begin} end=${end} x=${xOf} width=${width} y=${height - 3} narrow=${narrow} />
    </svg>
    <${Tip} grouped=${grouped} at=${cursor} x=${xOf} width=${width} own=${own} />`;
}

/** The axis from 0 to a whole tick. */
function axis(most) {
  const step = tick(most);
  return { step, top: Math.max(step, Math.ceil(most / step - 1e-9) * step) };
}

const printTick = (value) => (Number.isInteger(value) ? f().num(value) : f().tenths(value));

function Panel({ y, height, left, width, scale, what, unit, keys = [], children }) {
  const ticks = Array.from({ length: Math.round(scale.top / scale.step) }, (_, i) => (i + 1) * scale.step);
  const line = (value) => y + height - (height * value) / scale.top;
  return html`<g>
    ${ticks.map((value) => html`<line class="grid" x1=${left} x2=${width} y1=${line(value).toFixed(1)} y2=${line(value).toFixed(1)} />
      <text x=${left - 8} y=${(line(value) + 4).toFixed(1)} text-anchor="end">${printTick(value)}</text>`)}
    <text x=${left - 8} y=${y + height + 4} text-anchor="end">0</text>
    ${children}
    <line class="base" x1=${left} x2=${width} y1=${y + height + 0.5} y2=${y + height + 0.5} />
    <text class="key" x=${left} y=${y - NAME}><tspan class="what">${what}</tspan>${unit && html`<tspan dx="4">${unit}</tspan>`}</text>
    ${keys.map(([kind, words], i) => {
      return html`<g transform=${`translate(${left + KEY_GAP + nameWidth({ what, unit, keys: keys.slice(0, i) })} ${y - NAME})`}>${kind === "own" ? html`<rect class="bars own" x="-16" y="-8.5" width="9" height="9" />` : html`<line class="dash" x1="-26" x2="-6" y1="-4" y2="-4" />`}<text class="key">${words}</text></g>`;
    })}
  </g>`;
}

/** Before each key of a panel: its sign stands there. */
const KEY_GAP = 38;

/** The width of a panel's name with its keys. */
const nameWidth = ({ what, unit, keys = [] }) => keys.reduce((sum, [, words]) => sum + KEY_GAP + textWidth(words), textWidth(what) * BOLD + textWidth(unit) + 6);

/** Runs of measured values; a gap stays a gap. The last value is not over yet, and would look like a fall. */
function runsOf(values) {
  const runs = [];
  values.forEach((value, i) => {
    if (value === null || i === values.length - 1) return;
    if (i === 0 || values[i - 1] === null) runs.push([]);
    runs[runs.length - 1].push([i, value]);
  });
  return runs;
}

function places({ values, y, height, left, width, top }) {
  const x = (i) => left + ((width - left) * i) / values.length;
  const line = (value) => y + height - (height * value) / top;
  const points = (run) => run.map(([i, value]) => `${x(i + 0.5).toFixed(1)},${line(value).toFixed(1)}`).join(" ");
  return { x, line, points };
}

function Area(props) {
  const { x, points } = places(props);
  const bottom = props.y + props.height;
  return runsOf(props.values).map((run) => html`
    <polygon class="area" points=${`${x(run[0][0] + 0.5).toFixed(1)},${bottom} ${points(run)} ${x(run[run.length - 1][0] + 0.5).toFixed(1)},${bottom}`} />
    <polyline class="edge" points=${points(run)} />`);
}

/** Bars, the last one hollow: it is not over yet. */
function Bars(props) {
  const { x, line } = places(props);
  const { values, y, height, left, width, tone = "" } = props;
  const barWidth = (width - left) / values.length;
  const gap = barWidth > 3 ? 1 : 0.5;
  const last = values.length - 1;
  const bottom = y + height;
  const path = values.map((value, i) => (value && i !== last ? `M${x(i).toFixed(2)} ${bottom}V${Math.min(line(value), bottom - 1).toFixed(1)}h${(barWidth - gap).toFixed(2)}V${bottom}z` : "")).join("");
  const lastTop = values[last] ? Math.min(line(values[last]), bottom - 1) : bottom;
  return html`<path class=${`bars ${tone}`} d=${path} />
    ${values[last] > 0 && html`<rect class="hollow" x=${(x(last) + 0.5).toFixed(2)} y=${lastTop.toFixed(1)} width=${Math.max(1.5, barWidth - gap - 1).toFixed(2)} height=${(bottom - lastTop).toFixed(1)} />`}`;
}

function Dash(props) {
  const { points } = places(props);
  return runsOf(props.values).map((run) => html`<polyline class="halo" points=${points(run)} /><polyline class="dash" points=${points(run)} />`);
}

function TimeAxis({ begin, end, x, width, y, narrow }) {
  const every = timeTick(end - begin, narrow ? 3 : 7);
  const seconds = every < 60;
  const first = Math.ceil(begin / every) * every;
  const labels = [];
  for (let time = first; time < end; time += every) {
    if (width - x(time) > (seconds ? 96 : 62) && x(time) > 44 && f().clock(time, seconds) !== f().clock(end, seconds)) labels.push(html`<text x=${x(time).toFixed(1)} y=${y} text-anchor="middle">${f().clock(time, seconds)}</text>`);
  }
  return html`<g>${labels}<text x=${width} y=${y} text-anchor="end">${f().clock(end, seconds)}</text></g>`;
}

/** What a bar stands for, beside it and never over it; also for those who walk with the arrow keys. */
function Tip({ grouped, at, x, width, own }) {
  const { starts, values } = grouped;
  const per = (value) => (value === null || value === undefined ? "–" : `${f().rate(value)}${w("perSecond")}`);
  if (at === null) return html`<div class="tip-say" aria-live="polite"></div>`;
  const [from, to] = [starts[at], starts[at] + grouped.width];
  const right = x(from) > width / 2;
  const rows = columns(values, own).filter(([name]) => name !== "shadow" || values.get(name).some(Boolean));
  // Set through the object model, which the policy allows; a style attribute in the text of a page it does not.
  const place = right ? { right: `${width - x(from) + 8}px` } : { left: `${x(to) + 8}px` };
  return html`<div class="tip" style=${place} aria-live="polite"><b>${f().clock(from, true)} – ${f().clock(to, true)}</b>
    <table><tbody>${rows.map(([name, words]) => html`<tr><td>${words}</td><td>${per(values.get(name)[at])}</td></tr>`)}</tbody></table></div>`;
}

/** The series that are drawn, with their words. */
const columns = (values, own) => [["allowed", w("allowed")], ["denied", w("denied")], ["own", own], ["shadow", w("chart.shadow")]].filter(([name]) => values.has(name));

/** The numbers of the chart. */
function ChartTable({ grouped, marks, own }) {
  const { starts, values, width } = grouped;
  const shown = columns(values, own);
  const per = (value) => (value === null || value === undefined ? "–" : f().rate(value));
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${w("chart.table")}><table class="t">
    <thead><tr><th>${w("time")}</th>${shown.map(([, words]) => html`<th class="r">${words}${w("perSecond")}</th>`)}<th class="gap">${w("chart.marks")}</th></tr></thead>
    <tbody>${starts.map((start, i) => ({ start, i })).reverse().map(({ start, i }) => html`<tr key=${start}>
      <td>${f().clock(start, true)}</td>${shown.map(([name]) => html`<td class="r">${per(values.get(name)[i])}</td>`)}<td class="cut gap dim">${marks.filter((mark) => mark.at >= start && mark.at < start + width).map((mark) => mark.title ?? mark.words).join("; ")}</td></tr>`)}</tbody>
  </table></div>`;
}
