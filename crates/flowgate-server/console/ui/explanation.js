// The answer to "why?": one sentence, then the rules in four groups.

import { clean } from "../lib/text.js";
import { isOwnAction } from "../lib/verdict.js";
import { call } from "../state/api.js";
import { noteFailure } from "../state/link.js";
import { usePolicy } from "../state/policy.js";
import { address } from "../state/route.js";
import { stats } from "../state/stats.js";
import { say } from "../state/toast.js";
import { useState } from "../vendor/hooks.js";
import { FieldValue, Lead, Mistake, Sign, Text, Time, useNow, useRights } from "./basics.js";
import { authorWords } from "./author.js";
import { BanDialog } from "./ban_dialog.js";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { actionWords, limitTexts, plain } from "./rule_words.js";
import { LimitBar } from "./small_drawings.js";
import { f, gap, w, wx } from "./words.js";

/** @param answer of /v1/explain, with `at`, the server's time when it came, and `fields`, those that were asked for; looked: the subject that led to this page */
export function Explanation({ answer, looked, again }) {
  const now = useNow();
  const passed = now - answer.at;
  const { decision, ban, rules } = answer;
  const numbered = rules.map((rule, i) => ({ ...rule, index: i + 1 }));
  const isDecider = (rule) => !ban && rule.rule === decision.rule && rule.matched && (!decision.allowed || rule.limits.length === 0);
  const decided = numbered.filter(isDecider);
  const others = numbered.filter((rule) => rule.matched && rule.reached && !isDecider(rule));
  // Shadows and paused rules count, and deny nobody.
  const isStopped = (rule) => rule.shadow && rule.limits.some((limit) => !limit.allowed);
  const matched = others.filter((rule) => !isStopped(rule));
  const wouldDeny = others.filter(isStopped);
  const unreached = numbered.filter((rule) => rule.matched && !rule.reached && !isDecider(rule));
  const unmatched = numbered.filter((rule) => !rule.matched);
  // Large numbers get a wider column, the same in every row.
  const large = rules.some((rule) => rule.limits.some((limit) => limit.most >= 100_000));
  return html`<${Sentence} answer=${answer} looked=${looked} passed=${passed} now=${now} again=${again} />
    <section class=${`card ${large ? "large" : ""}`} aria-label=${w("subject.rules")}>
      ${(decided.length > 0 || ban) && html`<div class="grp"><${Sign} kind=${decision.allowed ? "allowed" : "denied"} tone=${decision.allowed ? "allowed" : "denied"} /><b>${w("group.decided")}</b></div>`}
      ${ban && html`<${HandBan} ban=${ban} now=${now} />`}
      ${decided.map((rule) => html`<${RuleBox} rule=${rule} passed=${passed} now=${now} />`)}
      <div class="grp">${matched.length > 0 && html`<${Sign} kind="allowed" tone="allowed" />`}<b>${w("group.matched")}</b>${matched.length ? w("group.matched.more") : w("group.none")}</div>
      ${matched.map((rule) => html`<${RuleBox} rule=${rule} passed=${passed} now=${now} />`)}
      ${wouldDeny.length > 0 && html`<div class="grp"><${Sign} kind="shadow" tone="shadow" /><b>${w("group.matched")}</b>${w("group.wouldDeny")}</div>`}
      ${wouldDeny.map((rule) => html`<${RuleBox} rule=${rule} passed=${passed} now=${now} />`)}
      <div class="grp"><b>${w("group.unreached")}</b>${unreached.length ? w(ban ? "group.unreached.ban" : "group.unreached.more") : w("group.unreached.none")}</div>
      ${unreached.map((rule) => html`<${RuleBox} rule=${rule} passed=${passed} now=${now} />`)}
      <${Unmatched} rules=${unmatched} />
    </section>
    ${(answer.fronts ?? []).map((front) => html`<${Front} front=${front} passed=${passed} now=${now} />`)}`;
}

/** What the rules of another system that is served here, such as Koala, say to the same request. */
function Front({ front, passed, now }) {
  const matched = front.rules.map((rule, i) => ({ ...rule, index: i + 1 })).filter((rule) => rule.matched);
  return html`<section class="card" aria-label=${clean(front.name)}>
    <div class="grp"><${Sign} kind=${front.allowed ? "allowed" : "denied"} tone=${front.allowed ? "allowed" : "denied"} /><b>${clean(front.name)}</b>${front.allowed ? w("front.allowed") : w("front.denied", { rule: clean(front.rule ?? "–") })}</div>
    ${matched.map((rule) => html`<${RuleBox} rule=${rule} passed=${passed} now=${now} link=${address("koala")} />`)}
  </section>`;
}

function Sentence({ answer, looked, passed, now, again }) {
  const { decision, ban } = answer;
  const policy = usePolicy();
  const rule = decision.rule && html`<a href=${address("rules", decision.rule)}><${Text} of=${decision.rule} most=${48} /></a>`;
  const until = ban?.until ?? decision.banned_until;
  const wait = until ? until - now : decision.retry_after === null ? null : decision.retry_after - passed;
  const time = wait === null ? null : html`<span class="denied">${f().countdown(wait)}</span>`;
  let words;
  if (decision.allowed) words = decision.rule ? wx("why.allowed.left", { rule, left: f().num(decision.remaining ?? 0), most: f().num(decision.limit ?? 0), n: decision.limit === null ? 0 : 1 }) : w(decision.matched ? "why.allowed" : "why.unmatched");
  else if (ban) words = wx("why.ban", { time });
  else if (until) words = wx("why.banned", { rule, time });
  else if (isOwnAction(decision.action)) words = wx(time ? "why.asksUntil" : "why.asks", { rule, action: html`<${Text} of=${decision.action} most=${24} />`, time });
  else if (decision.never) words = wx("why.never", { rule });
  else if (time) words = wx("why.denied", { rule, time });
  else words = wx("why.deniedAtOnce", { rule });
  if (decision.allowed && decision.rule && decision.limit === null) words = wx("why.allowedBy", { rule });
  const more = [w("why.asOf", { at: f().clock(answer.at, true) })];
  const end = until ?? (wait === null || decision.allowed ? null : answer.at + decision.retry_after);
  if (end) more.push(w("why.until", { at: f().moment(end, now, true) }));
  if (until && isOwnAction(decision.action)) more.push(w("why.action", { action: clean(decision.action) }));
  for (const each of decision.shadow ?? []) more.push(w(isPausedRule(policy, each, now) ? "why.paused" : "why.shadow", { rule: clean(each) }));
  if (decision.degraded) more.push(w("why.degraded"));
  if (decision.allowed && decision.delay > 0) more.push(w("why.delay", { time: f().span(decision.delay) }));
  return html`<${Lead} sign=${decision.allowed ? "allowed" : "denied"} more=${more.join(gap())} actions=${html`<${Actions} answer=${answer} looked=${looked} again=${again} />`}>${words}</${Lead}>`;
}

function Actions({ answer, looked, again }) {
  const { write, view } = useRights();
  const [open, setOpen] = useState(null);
  const [error, setError] = useState(null);
  const policy = usePolicy();
  if (view) return null;
  const lift = async () => {
    try {
      await call(`/v1/bans/${encodeURIComponent(answer.ban.id)}`, { method: "DELETE" });
      say(w("bans.lifted", { whom: `${answer.ban.field}=${clean(answer.ban.value)}` }));
      again();
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
  };
  const banned = answer.rules.find((rule) => rule.banned_until);
  const pairs = answer.fields;
  return html`${answer.ban && html`<button type="button" class="b" disabled=${!write} onClick=${lift}>${w("bans.lift.this")}</button>`}
    ${!answer.ban && banned && html`<a class="b" href=${address("bans", null, { rule: banned.rule })}>${w("bans.ofRule")}</a>`}
    <button type="button" class="b" disabled=${!write} onClick=${() => setOpen("ban")}>${w("subject.ban")}</button>
    <button type="button" class="b" disabled=${!write} onClick=${() => setOpen("reset")}>${w("subject.reset")}</button>
    <${Mistake} error=${error} />
    ${open === "ban" && html`<${BanDialog} choices=${pairs} start=${likelyField(pairs, looked, policy, answer)} close=${() => setOpen(null)} done=${again} />`}
    ${open === "reset" && html`<${ResetDialog} answer=${answer} close=${() => setOpen(null)} done=${again} />`}`;
}

/** Under a pause the server explains every rule as a shadow; the policy tells which ones are shadows by themselves. */
const isPausedRule = (policy, name, now) => stats.get()?.paused_until > now && policy?.rules.find((each) => each.name === name)?.shadow !== true;

/** Whom one would ban: the subject that is looked at, then whom the deciding or matching rules count, then an address or a user. */
function likelyField(pairs, looked, policy, { decision, rules }) {
  const by = (name) => policy?.rules.find((each) => each.name === name)?.by ?? [];
  const counted = [decision.rule, ...rules.filter((rule) => rule.matched).map((rule) => rule.rule)].flatMap(by);
  const isSame = ([name, value]) => looked.some((each) => each[0] === name && each[1] === value);
  return pairs.find(isSame) ?? counted.map((name) => pairs.find((pair) => pair[0] === name)).find(Boolean) ?? pairs.find(([name]) => ["ip", "user", "key"].includes(name)) ?? pairs[pairs.length - 1] ?? ["", ""];
}

/** A reset forgets the counters of the request in every rule that matches; the dialog names them. */
function ResetDialog({ answer, close, done }) {
  const [error, setError] = useState(null);
  const names = answer.rules.filter((rule) => rule.matched && (rule.limits.length || rule.banned_until)).map((rule) => rule.rule);
  const reset = async () => {
    try {
      await call("/v1/reset", { json: { fields: Object.fromEntries(answer.fields) } });
      say(w("reset.done"));
      close();
      done();
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
  };
  return html`<${Dialog} title=${w("reset.title")} close=${close} submit=${reset}
    footer=${html`<button type="button" class="b" onClick=${close}>${w("cancel")}</button><button class="b danger">${w("reset.do")}</button>`}>
    <p>${answer.fields.map(([field, value]) => html`<${FieldValue} field=${field} value=${value} most=${48} /> `)}</p>
    <p>${w("reset.what")}</p><p><b>${names.map(clean).join(w("listComma")) || w("group.none")}</b></p>
    <${Mistake} error=${error} />
  </${Dialog}>`;
}

function HandBan({ ban, now }) {
  return html`<div class="rulebox"><span class="idx"></span><span class="nm"><b>${w("origin.hand")}</b></span>
    <div class="lim"><${FieldValue} field=${ban.field} value=${ban.value} most=${40} /><${LimitBar} left=${1} most=${1} ban /><span class="nn denied">${f().span(Math.max(0, Math.ceil(ban.until - now)))}</span>
      <span class="muted tm" title=${ban.reason ? clean(ban.reason) : undefined}>${w("until", { at: f().moment(ban.until, now, true) })}${ban.reason ? html`${w("listComma")}<${Text} of=${ban.reason} most=${96} />` : ""}${ban.author ? `${w("listComma")}${authorWords(ban.author)}` : ""}</span></div></div>`;
}

function RuleBox({ rule, passed, now, link = address("rules", rule.rule) }) {
  const policy = usePolicy();
  const known = policy?.rules.find((each) => each.name === rule.rule);
  const banned = rule.banned_until && rule.banned_until > now;
  return html`<div class="rulebox"><span class="idx">${rule.index}</span>
    <span class="nm"><a href=${link}><${Text} of=${rule.rule} most=${40} /></a> ${banned ? html`<span class="tag denied">${w("banned")}</span>` : ""}${rule.shadow ? html`<span class="tag shadow"><${Sign} kind="shadow" />${w(isPausedRule(policy, rule.rule, now) ? "paused" : "shadow")}</span>` : ""}</span>
    <div>${rule.on_failure && rule.on_failure !== "local" ? html`<div class="lim"><code>on_failure = "${rule.on_failure}"</code></div>` : rule.limits.map((limit) => html`<${Limit} limit=${limit} passed=${passed} />`)}
      ${!rule.limits.length && !banned && html`<div class="lim"><${Unused} known=${known} /><span></span><span class="nn"><${Text} of=${actionWords(rule.action)} most=${24} /></span><span class="muted tm">${known?.title ? html`<${Text} of=${known.title} />` : ""}</span></div>`}
      ${banned && html`<div class="lim"><span>${w("ban")}</span><${LimitBar} left=${1} most=${1} ban /><span class="nn denied">${f().span(Math.max(0, Math.ceil(rule.banned_until - now)))}</span><span class="muted tm">${w("until", { at: f().moment(rule.banned_until, now, true) })}${rule.ban_scope === "subject" ? `${w("listComma")}${w("ban.everywhere")}` : ""}</span></div>`}
    </div></div>`;
}

/** The limits of a rule that counted nothing for this request; a rule without any decides at once. */
function Unused({ known }) {
  const texts = known ? limitTexts(known) : [];
  return texts.length ? html`<code>${texts.join(", ")}</code>` : html`<span>${w("atOnce")}</span>`;
}

/** One limit: what is left of the most, and when it changes. Between answers the times run down. */
function Limit({ limit, passed }) {
  const left = limit.remaining ?? 0;
  const times = [];
  if (!limit.allowed && limit.never) times.push(w("never"));
  else if (!limit.allowed && limit.retry_after) times.push(w("limit.next", { time: f().countdown(limit.retry_after - passed) }));
  if (limit.reset_after > passed && left < (limit.most ?? 0)) times.push(w("limit.reset", { time: f().span(Math.max(0, Math.ceil(limit.reset_after - passed))) }));
  return html`<div class="lim"><code title=${limit.limit}>${plain(limit.limit)}</code>
    ${limit.most === null ? html`<span></span>` : html`<${LimitBar} left=${left} most=${limit.most} />`}
    <span class=${`nn ${limit.allowed ? "" : "denied"}`}>${limit.most === null ? "–" : w("limit.left", { left: f().num(left), most: f().num(limit.most) })}</span>
    <span class="muted tm">${times.join(w("listComma"))}</span></div>`;
}

function Unmatched({ rules }) {
  const [open, setOpen] = useState(rules.length <= 12);
  return html`<div class="grp"><b>${w("group.unmatched")}</b>${rules.length ? w("group.unmatched.more", { n: rules.length }) : w("group.none")}
      <span class="grow"></span>${rules.length > 0 && html`<button type="button" class="b bare" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? w("fold") : w("unfold")}</button>`}</div>
    ${open && rules.length > 0 && html`<table class="t fold nm"><tbody>${rules.map((rule) => html`<tr key=${rule.rule}><td class="r dim opt">${rule.index}</td><td><a href=${address("rules", rule.rule)}><${Text} of=${rule.rule} most=${40} /></a></td>
      <td class="l2">${rule.failed && html`<code><${Text} of=${rule.failed.field} most=${32} /></code> <span class="muted">${w("wants")}</span> <code><${Text} of=${rule.failed.expected} most=${48} /></code>`}</td>
      <td class="l2">${rule.failed && html`<span class="muted">${w("has")}</span> ${rule.failed.found === null ? w("nothing") : html`<code><${Text} of=${rule.failed.found} most=${48} /></code>`}`}</td></tr>`)}</tbody></table>`}`;
}
