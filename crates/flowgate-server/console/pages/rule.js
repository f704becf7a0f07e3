// What does this rule do to whom?

import { recentRate, total } from "../lib/history.js";
import { ruleBlocks, withCount, withKey } from "../lib/toml.js";
import { clean } from "../lib/text.js";
import { isOwnAction, since } from "../lib/verdict.js";
import { call, Refused } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { caretLine, draft } from "../state/draft.js";
import { noteFailure, serverNow } from "../state/link.js";
import { usePolicy } from "../state/policy.js";
import { usePoll } from "../state/poll.js";
import { address, go } from "../state/route.js";
import { stats } from "../state/stats.js";
import { useState } from "../vendor/hooks.js";
import { Card, Lead, Mistake, Strip, Subject, Text, Time, useRights } from "../ui/basics.js";
import { FlowCard } from "../ui/chart.js";
import { Dialog } from "../ui/dialog.js";
import { Page, RANGE_EVERY, RangeChoice, useRange } from "../ui/frame.js";
import { html } from "../ui/html.js";
import { marksOf } from "../ui/marks.js";
import { plain, RuleSentence } from "../ui/rule_words.js";
import { Share } from "../ui/small_drawings.js";
import { SubjectActions } from "../ui/subject_actions.js";
import { f, gap, w, wx } from "../ui/words.js";
import { Painted } from "./start.js";

const SHOWN = 10;

export function Rule({ name }) {
  const range = useRange();
  const policy = usePolicy(true);
  const rule = policy?.rules.find((each) => each.name === name);
  const { data: history } = usePoll(`/v1/stats/history?range=${range}&rules=${encodeURIComponent(name)}`, Math.min(5, RANGE_EVERY.get(range)));
  const { data: subjects } = usePoll(rule ? `/v1/subjects/${encodeURIComponent(name)}` : null, 5);
  const heading = html`<span class="muted crumb"><a href=${address("rules")}>${w("page.rules")}</a> / </span><${Text} of=${name} most=${48} />`;
  return html`<${Page} title=${name} heading=${heading} right=${html`<${RangeChoice} range=${range} />`}>
    ${policy && !rule && html`<${Gone} name=${name} />`}
    ${rule && history && html`<${Body} rule=${rule} policy=${policy} history=${history} subjects=${subjects} range=${range} />`}
  </${Page}>`;
}

function Gone({ name }) {
  return html`<${Lead} sign="away" tone="">${w("rule.gone", { rule: name })}</${Lead}><p class="muted">${w("rule.gone.more")}${gap()}<a href=${address("edit")}>${w("page.edit")}</a></p>`;
}

function Body({ rule, policy, history, subjects, range }) {
  const counts = history.rules.find((each) => each.rule === rule.name) ?? empty(history);
  const key = rule.shadow ? "shadow" : "denied";
  const [allowed, denied] = [total(counts.allowed), total(counts[key])];
  // What a shadow rule saw is counted for the rules that decided; of itself it knows what it would have denied.
  const asked = allowed + denied;
  const recent = (list) => recentRate(list, history.step, 60, history.total.allowed) ?? 0;
  const rate = recent(counts[key]);
  const own = isOwnAction(rule.action) ? clean(rule.action) : null;
  const list = (rule.shadow ? subjects?.shadow : subjects?.denied) ?? [];
  const onset = list.length && rate > 0 ? since(list) : null;
  const series = rule.shadow ? { shadow: counts.shadow } : { allowed: counts.allowed, [own ? "own" : "denied"]: counts.denied, shadow: counts.shadow };
  return html`
    <${Sentence} rule=${rule} own=${own} rate=${rate} list=${list} onset=${onset} denied=${denied} asked=${asked} range=${range} />
    <${Strip} cells=${[
      !rule.shadow && { label: w("rule.asked", { range: w(`length.${range}`) }), value: f().num(asked), note: w("rate.minute", { rate: w("rate", { rate: f().rate(recent(counts.allowed) + rate) }) }) },
      !rule.shadow && { label: w("Allowed"), sign: "allowed", value: f().num(allowed), note: f().percent(allowed, asked) },
      rule.shadow
        ? { label: w("rule.would"), sign: "shadow", tone: denied ? "shadow" : "", value: f().num(denied), note: w("rule.would.note", { range: w(`length.${range}`) }) }
        : { label: own ? w("overview.own", { action: own }) : w("Denied"), sign: "denied", tone: denied ? "denied" : "", value: f().num(denied), note: asked ? w("rule.share", { share: f().percent(denied, asked) }) : "–" },
      { label: w("rule.bans"), value: f().num(rule.total?.bans_started ?? 0), note: w("rule.sinceStart") },
    ].filter(Boolean)} />
    <${FlowCard} title=${w("rule.chart")} history=${history} series=${series} own=${own} marks=${marksOf(history)} heights=${[56, 112]} onset=${onset && { at: onset, words: w("since", { at: f().clock(onset) }), tone: key }} />
    <div class="cols c-50">
      <${Subjects} title=${own && !rule.shadow ? w("rule.list.own", { action: own }) : w(rule.shadow ? "rule.list.shadow" : "rule.list.denied")} list=${list} rule=${rule} tone=${rule.shadow ? "shadow" : ""} withSince none=${w("rule.list.none")} />
      ${rule.shadow ? html`<${RuleText} rule=${rule} policy=${policy} />` : html`<${Subjects} title=${w("rule.list.asked")} list=${subjects?.asked ?? []} rule=${rule} tone="quiet" none=${w("rule.list.unasked")} />`}
    </div>
    ${!rule.shadow && html`<${RuleText} rule=${rule} policy=${policy} />`}`;
}

/** A rule without counts yet; what was not measured stays a gap. */
const empty = (history) => {
  const none = history.total.allowed.map((count) => (count === null ? null : 0));
  return { allowed: none, denied: none, shadow: none };
};

/** As many subjects as the server keeps for a rule. A full list may hide more. */
const KEPT = 32;
const many = (list) => (list.length >= KEPT ? `${KEPT}+` : f().num(list.length));

function Sentence({ rule, own, rate, list, onset, denied, asked, range }) {
  const n = list.length;
  const paused = useCell(stats)?.paused_until > serverNow();
  const values = { rate: html`<span class=${rule.shadow ? "shadow" : "denied"}>${w("rate", { rate: f().rate(rate) })}</span>`, at: onset && html`<${Time} at=${onset} />`, n: rule.shadow ? denied : n, subjects: many(list), denied: f().num(denied), asked: f().num(asked), range: w(`length.${range}`), action: own };
  const does = (verb) => wx(`rule.${verb}${own ? ".own" : ""}`, values);
  const sentence = asked === 0 ? w("rule.unmatched", values) : rule.shadow ? wx("rule.shadow", values) : rate > 0 && onset && !paused ? does("denies") : denied > 0 ? does("denied") : w("rule.quiet", values);
  const sign = asked === 0 ? null : rule.shadow ? "shadow" : rate > 0 || denied > 0 ? (rate > 0 && !paused ? "denied" : "allowed") : "allowed";
  return html`<${Lead} sign=${sign} more=${html`<${RuleSentence} rule=${rule} />`} actions=${html`<${Drafts} rule=${rule} />`}>${sentence}</${Lead}>`;
}

/** The buttons make a draft and lead to the editor. None of them writes. */
function Drafts({ rule }) {
  const { write, view } = useRights();
  const [raising, setRaising] = useState(false);
  const [error, setError] = useState(null);
  if (view) return null;
  const edit = async (change) => {
    try {
      const { body, etag, changing } = await call("/v1/rules");
      // Half a file is no base of a draft.
      if (changing) return setError(new Refused(409, { error: w("editor.changing") }));
      const old = draft.get();
      const text = old?.text ?? body;
      const changed = change ? change(text) : text;
      if (changed === null) return setError(new Refused(409, { error: w("rule.text.elsewhere") }));
      if (change || old) draft.set({ text: changed, base: old?.base ?? body, etag: old?.etag ?? etag });
      caretLine.at = ruleBlocks(changed).find((block) => block.name === rule.name)?.from ?? null;
      return go("edit");
    } catch (mistake) {
      noteFailure(mistake);
      return setError(mistake);
    }
  };
  const hasCount = (rule.limits ?? []).length > 0;
  return html`<button type="button" class="b" disabled=${!write} onClick=${() => edit(null)}>${w("rule.edit")}</button>
    ${hasCount && html`<button type="button" class="b" disabled=${!write} onClick=${() => setRaising(true)}>${w("rule.raise")}</button>`}
    ${rule.shadow
      ? html`<button type="button" class="b" disabled=${!write} onClick=${() => edit((text) => withKey(text, rule.name, "shadow", null))}>${w("rule.endShadow")}</button>`
      : html`<button type="button" class="b" disabled=${!write} onClick=${() => edit((text) => withKey(text, rule.name, "shadow", "true"))}>${w("rule.makeShadow")}</button>`}
    ${error && html`<${Mistake} error=${error} />`}
    ${raising && html`<${Raise} rule=${rule} close=${() => setRaising(false)} pick=${(count) => edit((text) => withCount(text, rule.name, count))} />`}`;
}

function Raise({ rule, close, pick }) {
  const first = /([\d.]+)\s*\//.exec(rule.limits[0])?.[1] ?? "";
  const [count, setCount] = useState(first && String(Number(first) * 2));
  const good = /^\d+(\.\d+)?$/.test(count) && Number(count) > 0;
  return html`<${Dialog} title=${w("rule.raise.title", { rule: rule.name })} close=${close} submit=${() => good && pick(count)}
    footer=${html`<button type="button" class="b" onClick=${close}>${w("cancel")}</button><button class="b solid" disabled=${!good}>${w("rule.raise.do")}</button>`}>
    <p class="muted">${wx("rule.raise.now", { limit: html`<code>${plain(rule.limits[0])}</code>` })}</p>
    <label class="field"><span>${w("rule.raise.count")}</span><input class="in w8" inputmode="decimal" value=${count} onInput=${(event) => setCount(event.target.value)} /></label>
  </${Dialog}>`;
}

/** The subjects of the last minute or two, which is less than the range of the numbers above. */
function Subjects({ title, list, rule, tone, withSince = false, none }) {
  const most = list[0]?.count ?? 1;
  return html`<${Card} title=${title} head=${list.length > 0 && html`<span class="label">${w("rule.of", { n: list.length, subjects: many(list) })}</span>`}>
    ${list.length === 0 ? html`<p class="pad muted">${none}</p>` : html`<table class="t fold">
      <thead><tr><th class="keep">${w("whom")}</th><th class="r keep">${w("times")}</th><th></th>${withSince && html`<th class="r">${w("sinceHead")}</th>`}<th></th></tr></thead>
      <tbody>${list.slice(0, SHOWN).map((each) => html`<tr key=${JSON.stringify(each.subject)}>
        <td class="whom"><${Subject} of=${each.subject} most=${48} /></td><td class="num">${each.error ? "≤ " : ""}${f().num(each.count)}</td><td class="opt"><${Share} of=${each.count / most} tone=${tone} /></td>
        ${withSince && html`<td class="r l2" data-l=${w("sinceHead")}><${Time} at=${each.first} /></td>`}
        <td class="acts l2"><${SubjectActions} subject=${each.subject} rule=${rule.name} ban=${withSince} banned=${withSince && each.banned} /></td></tr>`)}</tbody>
    </table>`}
  </${Card}>`;
}

/** The text of the rule. Rules of included files are named with their place, and edited on the server. */
function RuleText({ rule, policy }) {
  const { data: text } = usePoll("/v1/rules", Infinity);
  const index = policy.rules.indexOf(rule);
  const block = typeof text === "string" ? ruleBlocks(text).find((each) => each.name === rule.name) : null;
  const place = rule.source ? `${rule.source.split("/").pop()}${rule.line ? `:${rule.line}` : ""}` : "";
  const head = html`<code class="muted" title=${rule.source ?? undefined}>${clean(place)}</code><span class="label wide">${w("rule.place", { n: index + 1, all: policy.rules.length })}</span>`;
  const lines = block ? text.split("\n").slice(block.from, block.to) : [];
  return html`<${Card} title=${w("rule.text")} head=${head}>
    ${block ? html`<div class="ed">${lines.map((line, i) => html`<div class="ln">${block.from + i + 1}</div><div class="tx"><${Painted} text=${line} /></div>`)}</div>` : html`<p class="pad muted">${w("rule.text.elsewhere")}</p>`}
  </${Card}>`;
}
