// Is all well; who is denied, by which rule, since when?

import { latest, less, total } from "../lib/history.js";
import { clean } from "../lib/text.js";
import { BY_HAND, bansInForce, denier, deniers, isCulprit, isNoticeable, isOfKoala, isOwnAction, isRule, OF_KEYS, pairs, since, subjectsName } from "../lib/verdict.js";
import { useCell } from "../state/cell.js";
import { serverNow } from "../state/link.js";
import { usePoll } from "../state/poll.js";
import { address } from "../state/route.js";
import { hasPage, stats } from "../state/stats.js";
import { wideBans } from "../state/wide_bans.js";
import { useState } from "../vendor/hooks.js";
import { Card, Lead, Notice, Strip, Subject, Text, Time } from "../ui/basics.js";
import { FlowCard } from "../ui/chart.js";
import { Page, RANGE_EVERY, RangeChoice, useRange } from "../ui/frame.js";
import { html } from "../ui/html.js";
import { marksOf } from "../ui/marks.js";
import { EndPause } from "../ui/pause.js";
import { Share, Spark, SparkLine } from "../ui/small_drawings.js";
import { SubjectActions, subjectText } from "../ui/subject_actions.js";
import { isStillLoud, recentTurn, summary } from "../ui/summary.js";
import { f, gap, w, wx } from "../ui/words.js";
import { Start, Waiting } from "./start.js";

const SUBJECTS_SHOWN = 10;
const RULES_SHOWN = 5;
/** As many subjects as the server keeps for a rule. A full list may hide more. */
const SUBJECTS_KEPT = 32;

export function Overview() {
  const range = useRange();
  const now = useCell(stats);
  const rates = useCell(summary);
  const { data: history } = usePoll(`/v1/stats/history?range=${range}&rules=top`, RANGE_EVERY.get(range));
  // The card stays while somebody sends from it: its own requests must not take it away.
  const [sending, setSending] = useState(false);
  const paused = now?.paused_until > serverNow();
  const fresh = now && rates && (sending || (!paused && isUnasked(now, rates, history)));
  // Who has rules already knows what one is, and waits for requests.
  const First = now?.rules > 0 && !sending ? Waiting : Start;
  const ready = !fresh && now && rates && history;
  return html`<${Page} title=${w("page.overview")} saysPaused=${paused && ready} right=${html`<${RangeChoice} range=${range} />`}>
    ${fresh ? html`<${First} begin=${() => setSending(true)} />` : ready && html`<${Body} now=${now} rates=${rates} history=${history} range=${range} />`}
  </${Page}>`;
}

/** Nothing was asked since the start. */
function isUnasked(now, rates, history) {
  // The rates are newer than the history of a long range.
  if (!history || rates.allowed + rates.denied + rates.own > 0) return false;
  const { allowed, denied } = history.total;
  return total(allowed) + total(denied) === 0 && !now.most_denied.subjects.length && !now.hottest.subjects.length && serverNow() - now.started < 86_400;
}

function Body({ now, rates, history, range }) {
  const loudest = denier(rates.rules);
  const { data: subjects } = usePoll(loudest && isRule(loudest.rule) && `/v1/subjects/${encodeURIComponent(subjectsName(loudest.rule))}`, 2);
  const { open, banned } = whomOf(subjects);
  const bans = bansInForce(rates.rules);
  const wide = useCell(wideBans);
  const loud = !bans && loudest && isStillLoud(loudest, subjects?.denied ?? []) ? loudest : null;
  const paused = now.paused_until > serverNow();
  const onset = loud && open.length ? since(open) : null;
  const words = onset !== null ? w("overview.onset", { rule: loud.rule, at: f().clock(onset) }) : null;
  const own = total(history.total.own_action) > 0 ? ownWords(history.rules) : null;
  const series = { allowed: history.total.allowed, denied: less(history.total.denied, history.total.own_action), ...(own ? { own: history.total.own_action } : {}), shadow: history.total.shadow };
  return html`
    ${now.state === "degraded" && html`<${Degraded} now=${now} />`}
    ${paused
      ? html`<${Lead} sign="away" tone="" actions=${html`<${EndPause} />`} more=${turnWords(rates) ?? (rates.shadow > 0 ? w("overview.paused.would", { rate: w("rate", { rate: f().rate(rates.shadow) }) }) : w("overview.paused.nobody"))}>${w("overview.paused", { at: f().clock(now.paused_until) })}</${Lead}>`
      : bans && (wide.length || !banned.length)
        ? html`<${Banning} now=${now} bans=${bans} wide=${wide} />`
      : loud && open.length
        ? html`<${Denying} rule=${loud} rates=${rates} list=${open} since=${subjects.since} onset=${onset} history=${history} />`
        : html`<${AllWell} rates=${rates} now=${now} loudest=${loud} banned=${loudest ? banned : []} own=${own} />`}
    <${Numbers} now=${now} rates=${rates} history=${history} range=${range} hot=${(Boolean(loud) || (bans !== null && wide.length > 0)) && !paused} own=${own} />
    <${FlowCard} title=${w("overview.chart")} history=${history} series=${series} own=${own} marks=${marksOf(history)} onset=${words && { at: onset, words }} />
    <div class="cols c-62 even">
      <${DeniedMost} now=${now} rates=${rates} />
      <div class="stack fill"><${RulesThatDeny} history=${history} range=${range} /><${Latency} history=${history} range=${range} /></div>
    </div>`;
}

/** Bans by hand deny most of what is denied now. */
function Banning({ now, bans, wide }) {
  const at = bannedSince(now) ?? wide[0]?.since ?? null;
  const rate = html`<span class="denied">${w("rate", { rate: f().rate(bans.newest.denied) })}</span>`;
  const values = { bans: html`<a href=${address("bans")}>${w("overview.bans")}</a>`, rate, at: html`<${Time} at=${at} />` };
  return html`<${Lead} sign="denied" tone=${wide.length ? "denied" : ""} actions=${openBans()} more=${w("overview.bans.more", { n: now.bans?.hand ?? 0, count: f().num(now.bans?.hand ?? 0) })}>${wx(at === null ? "overview.bans.deny" : "overview.bans.since", values)}</${Lead}>`;
}

/** Since when bans by hand deny somebody; null: they deny nobody lately. */
const bannedSince = (now) => since(now.most_denied.subjects.filter((each) => each.rule === BY_HAND && each.first));
const openBans = () => html`<a class="b" href=${address("bans")}>${w("open.bans")}</a>`;

/** The subjects that a rule has denied lately: those that a ban by hand denies by now, and the others. */
function whomOf(subjects) {
  const denied = subjects?.denied ?? [];
  return { open: denied.filter((each) => !each.banned), banned: denied.filter((each) => each.banned) };
}

/** The action that rules of their own ask for, if it is one; else words for several. */
function ownWords(rules) {
  const actions = new Set(rules.filter((rule) => isOwnAction(rule.action) && total(rule.denied) > 0).map((rule) => clean(rule.action)));
  return actions.size === 1 ? [...actions][0] : w("overview.actions");
}

/** What a rule asks for, where that is not simply a denial. */
const ActionTag = ({ action }) => isOwnAction(action) && html` <span class="tag"><${Text} of=${action} most=${16} /></span>`;

/** The name of a rule, or what stands in its place, in words. */
const nameOf = (rule) => (isRule(rule) ? clean(rule) : rule === BY_HAND ? w("bans.byHand") : rule === OF_KEYS ? w("overview.keys") : w("overview.others"));
const ruleAddress = (name) => (isOfKoala(name) && hasPage("koala") ? address("koala") : address("rules", name));
const ruleLink = (name) => (isRule(name) ? html`<a href=${ruleAddress(name)}><bdi>${name}</bdi></a>` : name === BY_HAND ? html`<a href=${address("bans")}>${nameOf(name)}</a>` : nameOf(name));

function Denying({ rule, rates, list, since: begun, onset, history }) {
  const first = list[0];
  const others = list.length - 1;
  const full = list.length >= SUBJECTS_KEPT;
  // Since the rise, or as far back as the range goes.
  const denied = history.rules.find((each) => each.rule === rule.rule)?.denied ?? rule.counts.denied;
  const steps = Math.min(denied.length, Math.ceil((history.end - onset) / history.step));
  const minutes = Math.max(1, Math.round((steps * history.step) / 60));
  const all = total(denied, steps);
  // Subjects are counted for a minute or two, so their share is one of the same time.
  const lately = Math.max(first.count, total(rule.counts.denied, Math.ceil((rule.counts.end - begun) / rule.counts.step)));
  const culprit = others > 0 && isCulprit(first.count, lately);
  const second = [...rates.rules].filter((each) => each.rule !== rule.rule && each.denied > 0 && isRule(each.rule)).sort((a, b) => b.denied - a.denied)[0];
  const values = {
    rule: ruleLink(rule.rule),
    whom: html`<${Whom} subject=${first.subject} />`,
    n: others,
    more: full ? `${others}+` : f().num(others),
    rate: html`<span class="denied">${w("rate", { rate: f().rate(rule.denied) })}</span>`,
    at: html`<${Time} at=${onset} />`,
    action: html`<${Text} of=${rule.action} most=${24} />`,
  };
  const verb = isOwnAction(rule.action) ? "asks" : "denies";
  const more = wx(!others ? "overview.more.one" : lately >= all ? "overview.more.top" : "overview.more", { all: html`<b>${f().num(all)}</b>`, minutes, top: html`<b>${f().num(first.count)}</b>`, lately: f().num(lately), n: all, whom: html`<${Subject} of=${first.subject} most=${48} />` });
  const next = second ? wx("overview.next", { rule: html`<b>${nameOf(second.rule)}</b>`, rate: w("rate", { rate: f().rate(second.denied) }) }) : "";
  return html`<${Lead} sign="denied" more=${html`${more}${gap()}${next}${gap()}${turnWords(rates)}`} actions=${html`
      <${SubjectActions} subject=${first.subject} rule=${rule.rule} label=${w("inspect.whom", { whom: short(inWords(first.subject)) })} ban=${false} large />
      <a class="b" href=${ruleAddress(rule.rule)}>${w("open.rule", { rule: rule.rule })}</a>`}>
    ${wx(`overview.${verb}.${culprit ? "mostly" : others ? "more" : "one"}`, values)}
  </${Lead}>`;
}

/** In the sentence an address is its value alone; `user=7` keeps its field. */
const isAddress = (subject) => pairs(subject).length === 1 && pairs(subject)[0][0] === "ip";
const Whom = ({ subject }) => (isAddress(subject) ? html`<code><${Text} of=${subject.ip} most=${48} /></code>` : html`<${Subject} of=${subject} most=${48} />`);
const inWords = (subject) => clean(isAddress(subject) ? subject.ip : pairs(subject).map((pair) => pair.join("=")).join(" ")) || w("subject.everyone");
const short = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);

function AllWell({ rates, now, loudest, banned, own }) {
  const all = rates.allowed + rates.denied + rates.own;
  const most = now.most_denied.subjects[0];
  const turn = turnWords(rates);
  const lately = most ? wx("overview.well.most", { rule: html`<b>${most.rule ? nameOf(most.rule) : "–"}</b>`, whom: html`<${Subject} of=${most.fields ?? most.subject} most=${48} />`, n: most.count, count: f().num(most.count) }) : w("overview.well.none");
  const more = turn ? html`${turn}${gap()}${lately}` : lately;
  if (loudest) return html`<${Lead} sign="denied" more=${more}>${wx(isRule(loudest.rule) ? "overview.loud" : "overview.loud.keys", { rule: ruleLink(loudest.rule), rate: html`<span class="denied">${w("rate", { rate: f().rate(loudest.denied) })}</span>` })}</${Lead}>`;
  const byBans = rates.rules.find((each) => each.rule === BY_HAND)?.denied ?? 0;
  const begun = bannedSince(now);
  if (banned.length) return html`<${Lead} sign="allowed" actions=${openBans()} more=${byBans > 0 && begun !== null ? w("overview.banned.rate", { rate: w("rate", { rate: f().rate(byBans) }), at: f().moment(begun, serverNow()) }) : more}>${wx("overview.banned", { whom: html`<${Whom} subject=${banned[0].subject} />`, n: banned.length, others: banned.length - 1 })}</${Lead}>`;
  const asked = rates.own > 0 ? html`${own ?? w("overview.actions")}${w("colon")}${w("rate", { rate: f().rate(rates.own) })}${w("stop")}${gap()}` : "";
  if (isNoticeable(rates)) return html`<${Lead} sign="denied" tone="" more=${html`${asked}${more}`}>${partWords(rates)}</${Lead}>`;
  return html`<${Lead} sign="allowed" more=${html`${asked}${more}${gap()}${!rates.rules.some((rule) => rule.denied > (rule.allowed + rule.denied) / 10) && w("overview.well.share")}`}>
    ${rates.denied > 0 ? w("overview.well", { rate: w("rate", { rate: f().rate(rates.denied) }), share: f().percent(rates.denied, all) }) : w("overview.well.nobody")}
  </${Lead}>`;
}

/** In the minute after a start, a pause or its end: what the means of the last minute hold. Null later. */
function turnWords(rates) {
  const turn = recentTurn(rates);
  return turn && w(`overview.turn.${turn.kind}`, { at: f().clock(turn.at, true) });
}

/** What part of all is denied, and by what most, where no rule denies loudly. */
function partWords(rates) {
  const [first, ...others] = deniers(rates.rules);
  const values = { rate: w("rate", { rate: f().rate(rates.denied) }), share: f().percent(rates.denied, rates.allowed + rates.denied + rates.own), rule: first && ruleLink(first.rule) };
  return first ? wx(others.length ? "overview.part.most" : "overview.part", values) : w("overview.part.unnamed", values);
}

function Degraded({ now }) {
  const store = now.store ?? {};
  const server = store.servers?.find((each) => each.state !== "ready");
  return html`<${Notice} title=${w("degraded.title", { at: f().clock(now.since ?? serverNow(), true) })} action=${html`<a class="b" href=${address("store")}>${w("open.store")}</a>`}>
    ${server && html`<code>${server.at}</code>: ${w("degraded.unanswered", { n: store.unanswered ?? 0 })}${gap()}`}
    ${store.on_failure && html`<code>on_failure = "${store.on_failure}"</code>`}${store.local_share && html`, <code>local_share = "${store.local_share}"</code>`}
  </${Notice}>`;
}

function Numbers({ now, rates, history, range, hot, own }) {
  const all = rates.allowed + rates.denied + rates.own;
  const [listener, latency] = slowest(history.latency);
  const [used, unit] = f().bytes(now.memory.bytes);
  const most = f().bytes(now.memory.max_bytes).join(" ");
  const share = (rate, list) => w(all > 0 ? "overview.deniedShare" : "overview.pastShare", { share: f().percent(rate, all), range: w(`length.${range}`), past: f().percent(total(list), total(history.total.allowed) + total(history.total.denied)) });
  const denied = less(history.total.denied, history.total.own_action);
  return html`<${Strip} cells=${[
    { label: w("Allowed"), sign: "allowed", value: f().rate(rates.allowed), unit: w("perSecond"), note: all > 0 ? w("overview.ofAll", { share: f().percent(rates.allowed, all), rate: `${f().rate(all)}${w("perSecond")}` }) : w("overview.unasked") },
    { label: w("Denied"), sign: "denied", tone: hot ? "denied" : "", value: f().rate(rates.denied), unit: w("perSecond"), note: share(rates.denied, denied) },
    ...(own ? [{ label: w("overview.own", { action: own }), value: f().rate(rates.own), unit: w("perSecond"), note: share(rates.own, history.total.own_action) }] : []),
    { label: w("overview.shadow"), sign: "shadow", value: f().rate(rates.shadow), unit: w("perSecond"), note: w("overview.shadow.note") },
    { label: "p99", value: latency?.p99 === null || !latency ? "–" : f().milliseconds(latency.p99), unit: latency ? " ms" : "", note: latency ? w("overview.p50", { listener, p50: f().milliseconds(latency.p50) }) : w("overview.unmeasured") },
    { label: w("overview.counters"), value: used, unit: ` ${unit} ${w("overview.of", { most })}`, note: w("overview.memory", { evicted: f().num(now.memory.evicted), refused: f().num(now.memory.refused) }) },
  ]} />`;
}

/** The protocol with the largest p99 of those that were measured last. */
function slowest(latency = {}) {
  return Object.entries(latency).filter(([name]) => name !== "store").map(([name, each]) => [name, { p50: latest(each.p50), p99: latest(each.p99) }])
    .filter(([, each]) => each.p99 !== null).sort((a, b) => b[1].p99 - a[1].p99)[0] ?? [null, null];
}

function DeniedMost({ now, rates }) {
  const actions = new Map(rates.rules.map((rule) => [subjectsName(rule.rule), rule.action]));
  const rows = now.most_denied.subjects.slice(0, SUBJECTS_SHOWN);
  const most = rows[0]?.count ?? 1;
  const begun = now.most_denied.since ? f().moment(now.most_denied.since, serverNow()) : "–";
  return html`<${Card} title=${w("overview.most")} head=${html`<span class="label">${w("lately")}</span>`} foot=${rows.length ? w("overview.most.foot") : null}>
    ${rows.length === 0 && html`<p class="pad muted">${w("overview.most.none", { at: begun })}</p>`}
    ${rows.length > 0 && html`<table class="t fold most">
      <thead><tr><th class="keep">${w("whom")}</th><th>${w("rule")}</th><th class="r">${w("sinceHead")}</th><th class="r keep">${w("times")}</th><th></th><th class="r">${w("last")}</th><th></th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${`${row.rule} ${row.subject}`}>
        <td class="whom" title=${subjectText(row.fields ?? row.subject)}><${Subject} of=${row.fields ?? row.subject} most=${48} /></td>
        <td class="l2">${row.rule ? ruleLink(row.rule) : "–"}<${ActionTag} action=${actions.get(row.rule)} />${row.first && html`<span class="narrow-i"> · ${w("since", { at: f().clock(row.first) })}</span>`}</td>
        <td class="r opt"><${Time} at=${row.first} /></td>
        <td class="num">${row.error ? "≤ " : ""}${f().num(row.count)}</td><td class="opt"><${Share} of=${row.count / most} /></td>
        <td class="r dim opt">${row.last ? ago(row.last) : "–"}</td>
        <td class="acts l2"><${SubjectActions} subject=${row.fields ?? row.subject} rule=${row.rule && isRule(row.rule) ? row.rule : null} banned=${row.banned} /></td>
      </tr>`)}</tbody></table>`}
  </${Card}>`;
}

function ago(at) {
  const seconds = Math.max(0, serverNow() - at);
  return w("ago", { length: seconds < 10 ? w("length.s", { n: f().tenths(seconds) }) : seconds < 90 ? w("length.s", { n: Math.round(seconds) }) : seconds < 5400 ? w("length.min", { n: Math.round(seconds / 60) }) : w("length.h", { n: Math.round(seconds / 3600) }) });
}

function RulesThatDeny({ history, range }) {
  const sums = history.rules.map((rule) => ({ ...rule, sum: total(rule.denied) }));
  const rows = sums.filter((rule) => rule.sum > 0).sort((a, b) => b.sum - a.sum).slice(0, RULES_SHOWN);
  const all = total(history.total.denied);
  return html`<${Card} title=${w("overview.rules")} head=${html`<span class="label">${w("overview.rules.period", { range: w(`length.${range}`), every: w("length.s", { n: RANGE_EVERY.get(range) }) })}</span>`}>
    ${rows.length === 0 ? html`<p class="pad muted">${w("overview.rules.none")}</p>` : html`<table class="t">
      <thead><tr><th>${w("rule")}</th><th class="r">${w("denied")}</th><th class="r">${w("overview.share")}</th><th class="r">${w(`length.${range}`)}</th></tr></thead>
      <tbody>${rows.map((rule) => html`<tr key=${rule.rule}><td class="cut">${ruleLink(rule.rule)}<${ActionTag} action=${rule.action} /></td><td class="num">${f().num(rule.sum)}</td><td class="r dim">${f().percent(rule.sum, all)}</td>
        <td class="r"><div class="sp"><${Spark} denied=${rule.denied} allowed=${rule.allowed} area=${false} /></div></td></tr>`)}</tbody></table>`}
  </${Card}>`;
}

function Latency({ history, range }) {
  const rows = Object.entries(history.latency ?? {}).filter(([, each]) => each.p99?.length).map(([name, each]) => ({ name, p50: latest(each.p50), p99: latest(each.p99), line: each.p99 }));
  const shown = rows.filter((row) => row.p99 !== null);
  return html`<${Card} title=${w("overview.latency")}>
    ${shown.length === 0 ? html`<p class="pad muted">${w("overview.unmeasured")}</p>` : html`<table class="t">
      <thead><tr><th>${w("overview.listener")}</th><th class="r">p50</th><th class="r">p99</th><th class="r">p99, ${w(`length.${range}`)}</th></tr></thead>
      <tbody>${shown.map((row) => html`<tr key=${row.name}><td>${row.name === "store" ? w("overview.store") : row.name}</td><td class="r">${f().milliseconds(row.p50)}</td><td class="num">${f().milliseconds(row.p99)}</td>
        <td class="r"><div class="sp"><${SparkLine} values=${row.line} /></div></td></tr>`)}</tbody></table>`}
  </${Card}>`;
}
