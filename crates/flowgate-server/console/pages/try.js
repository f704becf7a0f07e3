// What would the draft have done to the traffic of the last minutes?

import { isUnkept } from "../lib/fields.js";
import { parseLimit, periods, sampleFor } from "../lib/limits.js";
import { clean } from "../lib/text.js";
import { firstCount, ruleBlocks } from "../lib/toml.js";
import { call } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { draft, noteTried } from "../state/draft.js";
import { away, noteFailure } from "../state/link.js";
import { usePoll } from "../state/poll.js";
import { address, replaceQuery, route } from "../state/route.js";
import { useEffect, useMemo, useState } from "../vendor/hooks.js";
import { Card, Command, Lead, Mistake, Segments, Sign, Subject, Text, useNow, useRights } from "../ui/basics.js";
import { Page } from "../ui/frame.js";
import { html } from "../ui/html.js";
import { Share } from "../ui/small_drawings.js";
import { SubjectActions } from "../ui/subject_actions.js";
import { ChartCard, CurveChart, curveRows, isTelling, TimelineChart, timelineRows } from "../ui/try_charts.js";
import { plain } from "../ui/rule_words.js";
import { f, gap, w, wx } from "../ui/words.js";

/** The lengths of a sample to choose from, in seconds. */
const LENGTHS = new Map([["1m", 60], ["5m", 300], ["10m", 600]]);
const PATIENCE_MS = 15_000;
/** The length that was picked last. It stays while other pages are open; the address keeps it over a reload. */
let picked = null;

export function Try() {
  const { data: sample, error, again } = usePoll("/v1/sample", 1);
  const own = useCell(draft);
  const { view } = useRights();
  const { data: file } = usePoll(own ? null : "/v1/rules", Infinity);
  const text = own?.text ?? file;
  const result = useTry(sample, text);
  const off = sample?.state === "off" || error?.status === 404 || error?.status === 409;
  return html`<${Page} title=${w("page.try")}>
    ${off && html`<p>${w("try.off")}</p><${Command} text="flowgate replay access.log --config flowgate.toml --compare draft.toml --report report.html" />`}
    ${!off && sample && !sample.requests && sample.state !== "recording" && html`<${Lead} more=${`${view ? `${w("publish.view")}${gap()}${w("try.view")}${gap()}` : ""}${w("try.empty.more")}`}>${w("try.empty")}</${Lead}>`}
    ${!off && sample && html`<${SampleBar} sample=${sample} again=${again} text=${text} />`}
    ${result.error && html`<div class="tools"><${Mistake} error=${result.error} /><button type="button" class="b" disabled=${result.busy} onClick=${result.again}>${w("try.retry")}</button></div>`}
    ${result.busy && !result.data && html`<p class="muted" role="status">${w("try.busy")}</p>`}
    ${result.data && html`<${Result} data=${result.data} draft=${own !== null} text=${text} seconds=${Math.round((sample?.until ?? 0) - (sample?.since ?? 0))} />`}
  </${Page}>`;
}

/** Tries a text once a sample is complete, and again when the server is back if there was no answer. A try that is refused waits for a click. */
function useTry(sample, text) {
  const [state, setState] = useState({ data: null, error: null, busy: false });
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((count) => count + 1);
  const gone = useCell(away) !== null;
  // A recording without an end is tried as it is when the page comes up and when the draft changes.
  const endless = sample?.state === "recording" && sample.until === null;
  const ready = sample && (sample.state !== "recording" || endless) && sample.requests > 0 && typeof text === "string";
  const key = ready ? `${sample.since} ${endless ? "" : sample.requests}` : null;
  useEffect(() => {
    if (!key) return setState({ data: null, error: null, busy: false });
    // The numbers of the draft before stay until those of this one are there.
    setState((old) => ({ ...old, busy: true, lost: false }));
    const stop = new AbortController();
    call("/v1/rules/try", { toml: text, signal: stop.signal, patience: PATIENCE_MS })
      .then(({ body }) => {
        setState({ data: body, error: null, busy: false });
        noteTried(text);
      })
      .catch((error) => {
        if (stop.signal.aborted) return;
        if (noteFailure(error)) setState((old) => ({ ...old, lost: true }));
        else setState({ data: null, error, busy: false });
      });
    return () => stop.abort();
  }, [key, text, turn]);
  useEffect(() => {
    if (state.lost && !gone) again();
  }, [state.lost, gone]);
  return { ...state, again };
}

function SampleBar({ sample, again, text }) {
  const asked = useCell(route).query.get("for");
  const chosen = LENGTHS.has(asked) ? asked : picked;
  const setLength = (next) => {
    picked = next;
    replaceQuery({ for: next });
  };
  const advice = useMemo(() => (typeof text === "string" ? sampleFor(periods(text, ruleBlocks(text)), [...LENGTHS.values()]) : null), [text]);
  const advised = [...LENGTHS].find(([, seconds]) => seconds === advice?.length)?.[0] ?? "5m";
  const length = chosen ?? advised;
  const [error, setError] = useState(null);
  const { write, view } = useRights();
  const now = useNow(sample.state === "recording");
  const recording = sample.state === "recording";
  const act = async (options) => {
    try {
      await call("/v1/sample", options);
      setError(null);
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
    again();
  };
  const seconds = Math.max(0, (recording ? now : sample.until ?? now) - (sample.since ?? now));
  const values = { length: html`<b>${f().span(Math.round(seconds))}</b>`, from: f().clock(sample.since ?? now, true), to: f().clock(recording ? now : sample.until ?? now, true), requests: html`<b>${f().num(sample.requests ?? 0)}</b>`, part: sample.one_in > 1 ? w("try.oneIn", { n: f().num(sample.one_in), by: sample.by }) : w("try.allOfThem") };
  const bytes = w("try.bytes", { used: f().bytes(sample.bytes ?? 0).join(" "), most: f().bytes(sample.max_bytes ?? 0).join(" ") });
  return html`<div class="tools">
      <span>${sample.requests > 0 || recording ? html`${recording && html`<${Sign} kind="shadow" tone="shadow" /> `}${wx(recording ? "try.recording" : "try.sample", values)} <span class="muted">· ${bytes}</span>` : html`<span class="muted">${w("try.nothing")}</span>`}</span>
      <span class="grow"></span>
      ${!view && !recording && html`<${Segments} label=${w("try.length")} value=${length} pick=${setLength} options=${[...LENGTHS.keys()].map((each) => ({ value: each, label: w(`length.${each}`) }))} />
        <button type="button" class="b" disabled=${!write} onClick=${() => act({ json: { for: length } })}>${sample.requests ? w("try.again") : w("try.record")}</button>`}
      ${!view && recording && sample.until !== null && html`<button type="button" class="b" disabled=${!write} onClick=${() => act({ json: { for: "0s" } })}>${w("try.stop")}</button>`}
      ${!view && (recording || sample.requests > 0) && html`<button type="button" class="b" disabled=${!write} onClick=${() => act({ method: "DELETE" })}>${w("try.forget")}</button>`}
    </div>${!view && !recording && advice && (!sample.requests || seconds < LENGTHS.get(advised)) && html`<${Hint} advice=${advice} length=${advised} />`}${recording && sample.until !== null && html`<p class="label">${w("try.recording.more")}</p>`}<${Mistake} error=${error} />`;
}

/** How long a sample makes sense for the limits of the draft. */
function Hint({ advice: { judged, beyond }, length }) {
  const values = ({ limit, rule }) => ({ limit: html`<code><${Text} of=${plain(limit)} most=${48} /></code>`, rule: html`<b><${Text} of=${rule ?? ""} most=${40} /></b>`, length: w(`length.${length}`), command: html`<code>flowgate replay</code>` });
  return html`<p class="label">${judged && wx("try.hint", values(judged))}${judged && beyond && gap()}${beyond && wx("try.hint.beyond", values(beyond))}</p>`;
}

/** The headers and queries that rules of a text name, by rule. A sample has none, so that it says nothing about these rules. */
function unkeptOf(text) {
  const all = text.split("\n");
  const found = ruleBlocks(text).map(({ name, from, to }) => {
    const quoted = all.slice(from, to).filter((line) => !/^\s*#/.test(line)).join("\n").matchAll(/"([^"\n]*)"|'([^'\n]*)'/g);
    return [name, [...new Set(Array.from(quoted, ([, double, single]) => double ?? single).filter(isUnkept))]];
  });
  return new Map(found.filter(([name, fields]) => name && fields.length));
}

function Result(props) {
  return props.data.compare ? html`<${Compared} ...${props} />` : null;
}

function Compared({ data, draft: hasDraft, text, seconds }) {
  const { compare } = data;
  const newly = compare.newly_denied;
  const main = newly.rules.reduce((most, each) => (!most || each.requests > most.requests ? each : most), null);
  const curve = data.what_if?.curves.find((each) => each.rule === main?.rule) ?? data.what_if?.curves[0];
  const unkept = useMemo(() => (typeof text === "string" ? unkeptOf(text) : new Map()), [text]);
  const count = (subjects) => `${f().num(subjects.count)}${subjects.at_least ? "+" : ""}`;
  const more = wx("try.more", { now: f().percent(data.denied, data.requests), then: html`<b>${f().percent(compare.outcome.denied, compare.outcome.requests)}</b>`, passed: f().num(compare.newly_passed.requests) });
  const noDraft = html`${w("try.noDraft")}${gap()}<a href=${address("edit")}>${w("page.edit")}</a>`;
  return html`
    <${Lead} sign=${newly.requests ? "denied" : "allowed"} more=${hasDraft ? more : noDraft} actions=${hasDraft && html`<a class="b" href=${address("edit")}>${w("try.back")}</a>`}>
      ${!hasDraft ? w("try.inForceDenied", { n: f().num(data.denied), all: f().num(data.requests) }) : newly.requests ? wx("try.denied", { n: html`<span class="denied">${f().num(newly.requests)}</span>`, subjects: count(newly.subjects), count: newly.subjects.count }) : compare.newly_passed.requests ? w("try.passed", { n: f().num(compare.newly_passed.requests) }) : w("try.same")}
    </${Lead}>
    <div class="cols c-50 even">
      <${ChartCard} title=${w("rule.chart")} legend=${[["denied", w("try.draft")], ["line", w("try.inForce")]]} heads=${[w("time"), w("try.inForce"), w("try.draft")]} rows=${() => timelineRows(data.timeline, compare.outcome.timeline)}>
        <${TimelineChart} before=${data.timeline} after=${compare.outcome.timeline} /></${ChartCard}>
      ${curve && html`<${ChartCard} title=${w("try.curve", { rule: curve.rule })} legend=${[["curve", w("try.requests")], ["curve2", w("try.subjects")]]} heads=${[w("rule.raise.count"), w("try.requests"), w("try.subjects")]} rows=${() => curveRows(curve)} foot=${html`<${Advice} curve=${curve} />`}>
        <${CurveChart} curve=${curve} draft=${typeof text === "string" ? firstCount(text, curve.rule) : null} /></${ChartCard}>`}
    </div>
    <div class="cols c-62 even"><div class="stack fill"><${ByRule} data=${data} unkept=${unkept} /><${CannotJudge} data=${data} unkept=${unkept} seconds=${seconds} /></div><div class="stack fill"><${Newly} title=${w("try.newly")} change=${newly} sign="+" curves=${data.what_if?.curves ?? []} />${compare.newly_passed.most.length > 0 && html`<${Newly} title=${w("try.newlyPassed")} change=${compare.newly_passed} sign="−" curves=${data.what_if?.curves ?? []} />`}</div></div>`;
}

function Advice({ curve }) {
  const subjects = { n: curve.subjects, count: f().num(curve.subjects) };
  if (!isTelling(curve)) return w("try.few", subjects);
  const isSpared = curve.spares !== null && curve.spares !== undefined;
  const advice = f().language !== "en" && isSpared ? w("try.advice", { count: f().num(curve.points[curve.spares].count) }) : html`<span lang="en">${clean(curve.advice)}</span>`;
  return curve.by.length ? html`${advice}${gap()}${w("try.many", subjects)}` : advice;
}

function ByRule({ data, unkept }) {
  const { compare } = data;
  const before = new Map(data.rules.map((rule) => [rule.name, rule]));
  const newly = new Map(compare.newly_denied.rules.map((each) => [each.rule, each.requests]));
  const passed = new Map(compare.newly_passed.rules.map((each) => [each.rule, each.requests]));
  // Of a rule with several limits, the first: its curve is the one that is drawn.
  const spares = new Map((data.what_if?.curves ?? []).filter((each) => each.spares !== null).map((each) => [each.rule, each.points[each.spares].count]).reverse());
  const zero = (value) => html`<span class=${value ? "" : "zero"}>${f().num(value)}</span>`;
  const denied = (rule) => (rule.shadow ? rule.would_deny : rule.denied);
  return html`<${Card} title=${w("try.byRule")} foot=${html`${w("try.byRule.foot")}${spares.size > 0 && html`${gap()}${w("try.spares.foot")}`}`}><table class="t fold"><thead><tr><th class="keep">${w("rule")}</th><th class="r">${w("try.head.now")}</th><th class="r">${w("try.head.draft")}</th><th class="r keep">${w("try.head.newly")}</th><th class="r">${w("try.head.passed")}</th><th class="r">${w("try.head.spares")}</th></tr></thead>
    <tbody>${compare.outcome.rules.map((rule) => html`<tr key=${rule.name}><td><a href=${address("rules", rule.name)}><${Text} of=${rule.name} most=${40} /></a>${rule.shadow && html` <span class="tag shadow"><${Sign} kind="shadow" />${w("shadow")}</span>`}</td>
      ${unkept.has(rule.name) ? html`<td class="r opt">–</td><td class="r opt">–</td><td class="num">–</td><td class="r l2" data-l=${w("try.head.passed")}>–</td><td class="r opt">–</td>` : html`<td class="r l2" data-l=${w("try.head.now")}>${before.has(rule.name) ? zero(denied(before.get(rule.name))) : w("try.new")}</td><td class="r l2" data-l=${w("try.head.draft")}>${zero(denied(rule))}</td>
      <td class="num">${newly.get(rule.name) ? html`<span class="denied">+${f().num(newly.get(rule.name))}</span>` : zero(0)}</td><td class="r l2" data-l=${w("try.head.passed")}>${zero(passed.get(rule.name) ?? 0)}</td><td class="r opt">${spares.get(rule.name) ?? "–"}</td>`}</tr>`)}</tbody></table></${Card}>`;
}

/** Most limits of a short sample are so: they stand in one line. */
const LONGER = "longer than the sample";

/** The server compares with the time from the first request to the last, which is less than the recording lasted. */
function isWithin(limit, seconds) {
  const found = parseLimit(limit);
  return found !== null && Math.max(found.seconds, found.after?.seconds ?? 0) <= seconds;
}

function CannotJudge({ data, unkept, seconds }) {
  const list = (data.cannot_judge ?? []).filter((each) => !unkept.has(each.rule) && !(each.why === LONGER && each.limit && isWithin(each.limit, seconds)));
  const long = list.filter((each) => each.limit && each.why === LONGER);
  return html`<${Card} title=${w("try.cannot")}><ul class="pad plainlist">
    ${unkept.size > 0 && html`<li><${Sign} kind="away" />${w("try.unkept")}${gap()}${[...unkept].map(([rule, fields], i) => html`${i ? w("listComma") : ""}<b><${Text} of=${rule} most=${40} /></b> <code><${Text} of=${fields.join(" ")} most=${80} /></code>`)}</li>`}
    ${long.length > 0 && html`<li><${Sign} kind="away" />${w("try.longer")}${gap()}${long.map((each, i) => html`${i ? w("listComma") : ""}<b><${Text} of=${each.rule} most=${40} /></b> <code><${Text} of=${plain(each.limit)} /></code>`)}</li>`}
    ${list.filter((each) => !long.includes(each)).map((each) => html`<li><${Sign} kind="away" /><b><${Text} of=${each.rule} most=${40} /></b>${each.limit && html`: <code><${Text} of=${each.limit} /></code>`} <span lang="en">${clean(each.why)}</span></li>`)}
    <li><${Sign} kind="away" />${w("try.warmUp")}</li></ul></${Card}>`;
}

/** A replay tells the values of a subject; the fields are the rule's `by`. */
function subjectOf(hit, curves) {
  const by = curves.find((curve) => curve.rule === hit.rule)?.by ?? [];
  return by.length === 1 ? Object.fromEntries([[by[0], hit.subject]]) : hit.subject;
}

/** Whom a change meets: those that are newly denied, or that newly pass. */
function Newly({ title, change: newly, sign, curves }) {
  const most = newly.most[0]?.count ?? 1;
  const tone = sign === "+" ? "denied" : "allowed";
  return html`<${Card} title=${title} head=${newly.most.length > 0 && html`<span class="label">${w("try.of", { n: `${f().num(newly.subjects.count)}${newly.subjects.at_least ? "+" : ""}` })}</span>`}>
    ${newly.most.length === 0 ? html`<p class="pad muted">${w("try.nobody")}</p>` : html`<table class="t fold"><thead><tr><th class="keep">${w("whom")}</th><th class="r keep">${w("times")}</th><th></th><th></th></tr></thead>
      <tbody>${newly.most.slice(0, 10).map((each) => html`<tr key=${`${each.rule} ${each.subject}`}><td class="cut"><${Subject} of=${subjectOf(each, curves)} most=${48} /></td><td class=${`num ${tone}`}>${sign}${f().num(each.count)}</td><td class="opt"><${Share} of=${each.count / most} tone=${sign === "+" ? undefined : "quiet"} /></td><td class="acts l2"><${SubjectActions} subject=${subjectOf(each, curves)} rule=${each.rule} ban=${false} /></td></tr>`)}</tbody></table>`}
  </${Card}>`;
}
