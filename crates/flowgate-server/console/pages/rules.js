// Which rules are in force, what does each do right now?

import { total } from "../lib/history.js";
import { clean, cleanLines } from "../lib/text.js";
import { isOwnAction } from "../lib/verdict.js";
import { useCell } from "../state/cell.js";
import { serverNow } from "../state/link.js";
import { usePolicy } from "../state/policy.js";
import { usePoll } from "../state/poll.js";
import { address } from "../state/route.js";
import { stats } from "../state/stats.js";
import { useMemo, useState } from "../vendor/hooks.js";
import { Command, Lead, Sign, Text, useRights } from "../ui/basics.js";
import { Page } from "../ui/frame.js";
import { html, memo } from "../ui/html.js";
import { PauseDialog } from "../ui/pause.js";
import { actionWords, banShort, banWords, Conditions, limitTexts, wants } from "../ui/rule_words.js";
import { useRowsInView } from "../ui/rows_in_view.js";
import { Spark } from "../ui/small_drawings.js";
import { f, w } from "../ui/words.js";

/** More rules come in pages of this size. */
const PAGE = 1000;
/** Below this many rules the history of all is asked for, else of the rows in view. */
const FEW = 60;
/** Steps of 10 s in five minutes. */
const FIVE_MINUTES = 30;
const NO_COUNTS = { allowed: [0], denied: [0], shadow: [0] };

export function Rules() {
  const policy = usePolicy(true);
  const now = useCell(stats);
  const { write } = useRights();
  const [pausing, setPausing] = useState(false);
  const paused = now?.paused_until > serverNow();
  const pause = (tone) => write && !paused && html`<button type="button" class=${`b ${tone}`} onClick=${() => setPausing(true)}>${w("pause.open")}</button>`;
  const right = html`${pause("bare hide")}<a class="b" href=${address("edit")}>${w("rules.edit")}</a>`;
  return html`<${Page} title=${w("page.rules")} right=${right}>
    ${now?.broken && html`<${Broken} broken=${now.broken} policy=${policy} />`}
    ${policy && (policy.rules.length ? html`<${Table} policy=${policy} pause=${pause("narrow-b")} />` : html`<${Empty} hasFile=${Boolean(now?.file_etag)} />`)}
    ${pausing && html`<${PauseDialog} close=${() => setPausing(false)} />`}
  </${Page}>`;
}

/** The report of a file that is wrong; its rules are not in force. */
function Broken({ broken, policy }) {
  const report = broken.report ?? policy?.broken?.report ?? "";
  return html`<div class="notice wrong"><${Sign} kind="denied" />
    <div><b>${w("rules.broken", { at: f().clock(broken.since, true), loaded: policy ? f().clock(policy.loaded) : "–" })}</b>
      <pre class="report mt2" lang="en">${cleanLines(report)}</pre></div>
    <a class="b" href=${address("edit")}>${w("rules.mend")}</a></div>`;
}

const Empty = ({ hasFile }) => html`<${Lead} more=${w(hasFile ? "rules.none.file" : "rules.none.noFile")}>${w("rules.none")}</${Lead}>
  ${!hasFile && html`<${Command} text="flowgate serve --config flowgate.toml" />`}`;

/** All words of a rule, in small letters, for the filter. */
const wordsOf = (rule) => clean([rule.name, rule.title ?? "", rule.source ?? "", rule.action, ...(rule.by ?? []), ...limitTexts(rule), ...rule.when.flatMap((each) => [each.field, wants(each)]), rule.shadow ? "shadow" : ""].join(" ")).toLowerCase();

function Table({ policy, pause }) {
  const [filter, setFilter] = useState("");
  const [deniedOnly, setDeniedOnly] = useState(false);
  const [shadowOnly, setShadowOnly] = useState(false);
  const [page, setPage] = useState(0);
  const [body, inView] = useRowsInView(policy);
  const texts = useMemo(() => policy.rules.map(wordsOf), [policy]);
  const asked = policy.rules.length <= FEW ? policy.rules.map((rule) => rule.name) : inView;
  const { data: history } = usePoll(asked.length ? `/v1/stats/history?range=1h&rules=${asked.map(encodeURIComponent).join(",")}` : null, 5);
  const byName = useMemo(() => new Map((history?.rules ?? []).map((each) => [each.rule, each])), [history]);
  const sums = (rule) => {
    const counts = byName.get(rule.name);
    return counts ? { allowed: total(counts.allowed, FIVE_MINUTES), denied: total(counts.denied, FIVE_MINUTES), shadow: total(counts.shadow, FIVE_MINUTES) } : null;
  };
  // A rule that was asked for and is not in the answer has counted nothing.
  const askedNames = useMemo(() => new Set(asked), [history]);
  const isAsked = (name) => history !== null && history !== undefined && askedNames.has(name);
  const wanted = filter.trim().toLowerCase().split(/\s+/).filter(Boolean);
  // A shadow rule denies nobody.
  const isDenying = (rule) => !rule.shadow && sums(rule)?.denied > 0;
  const found = policy.rules.map((rule, i) => ({ rule, i })).filter(({ rule, i }) => wanted.every((word) => texts[i].includes(word)) && (!deniedOnly || isDenying(rule)) && (!shadowOnly || rule.shadow));
  const shown = found.slice(page * PAGE, (page + 1) * PAGE);
  const pages = Math.ceil(found.length / PAGE);
  const usual = useMemo(() => commonest(policy.rules.map((rule) => rule.source)), [policy]);
  return html`<div class="tools">
      <span class="search"><kbd>/</kbd><input class="in" data-search type="search" placeholder=${w("rules.filter")} aria-label=${w("rules.filter")} value=${filter} onInput=${(event) => {
        setFilter(event.target.value);
        setPage(0);
      }} /></span>
      <label class="check"><input type="checkbox" checked=${deniedOnly} onChange=${() => setDeniedOnly(!deniedOnly)} />${w("rules.denied")} <span class="muted">${policy.rules.filter(isDenying).length}</span></label>
      <label class="check"><input type="checkbox" checked=${shadowOnly} onChange=${() => setShadowOnly(!shadowOnly)} />${w("shadow")} <span class="muted">${policy.rules.filter((rule) => rule.shadow).length}</span></label>
      <span class="grow"></span>${pause}
      <span class="label" role="status">${found.length < policy.rules.length ? w("rules.found", { n: f().num(found.length), all: f().num(policy.rules.length) }) : w("rules.order", { at: f().clock(policy.loaded) })}</span>
    </div>
    <div class="card"><table class="t rules fold">
      <thead><tr><th class="r">#</th><th class="keep">${w("rule")}</th><th>${w("rules.matches")}</th><th>${w("limits")}</th><th>${w("action")}</th><th class="r">${w("allowed")}</th><th class="r keep">${w("denied")}</th><th class="r">${w("length.1h")}</th></tr></thead>
      <tbody ref=${body}>${shown.map(({ rule, i }) => html`<${Row} key=${rule.name} rule=${rule} index=${i + 1} counts=${byName.get(rule.name) ?? (isAsked(rule.name) ? NO_COUNTS : undefined)} showSource=${rule.source !== usual} language=${f().language} />`)}</tbody>
    </table>
    ${found.length === 0 && html`<p class="pad muted">${w("rules.nothing")}</p>`}
    ${pages > 1 && html`<footer>${w("bans.page", { from: f().num(page * PAGE + 1), to: f().num(page * PAGE + shown.length), all: f().num(found.length) })}<span class="grow"></span>
      <span class="pager"><button type="button" class="b" disabled=${page === 0} onClick=${() => setPage(page - 1)}>${w("earlier")}</button><button type="button" class="b" disabled=${page + 1 >= pages} onClick=${() => setPage(page + 1)}>${w("later")}</button></span></footer>`}
    </div>`;
}

/** The file of most rules; its name would say nothing. */
function commonest(sources) {
  const counts = new Map();
  for (const source of sources) counts.set(source, (counts.get(source) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

/** Drawn anew only when its counts are others: a thousand rows stand still. */
const Row = memo(({ rule, index, counts, showSource }) => {
  const limits = limitTexts(rule);
  const five = counts && { allowed: total(counts.allowed, FIVE_MINUTES), denied: total(counts.denied, FIVE_MINUTES), shadow: total(counts.shadow, FIVE_MINUTES) };
  const denied = five && (rule.shadow ? five.shadow : five.denied);
  const asked = five && five.allowed + five.denied;
  const hot = five && !rule.shadow && five.denied >= 300 && five.denied > asked / 10;
  const idle = Object.values(rule.total ?? { never: 1 }).every((count) => count === 0) && (!asked || asked + five.shadow === 0);
  const second = rule.ban ? banShort(rule.ban) : limits.slice(1).join(", ");
  return html`<tr data-name=${rule.name}>
    <td class="idx">${index}</td>
    <td class="name"><a href=${address("rules", rule.name)}><${Text} of=${rule.name} most=${64} /></a>${rule.shadow && html`<span class="tag shadow"><${Sign} kind="shadow" />${w("shadow")}</span>`}${rule.ban && html`<span class="tag">${w("rules.bans")}</span>`}${idle && html`<span class="tag narrow-i">${w("rules.never")}</span>`}
      <span class="two"><${Text} of=${rule.title ?? ""} most=${96} /></span>
      <span class="two narrow-i">${limits.length ? html`<code>${limits.join(", ")}</code>` : w("atOnce")}${rule.by?.length ? html` ${w("by")} <code>${clean(rule.by.join(", "))}</code>` : ""}</span></td>
    <td class="opt"><${Conditions} of=${rule.when} /><span class="two">${rule.by?.length ? html`${w("by")} <code>${clean(rule.by.join(", "))}</code>` : ""}</span></td>
    <td class="opt" title=${rule.ban ? banWords(rule.ban) : undefined}>${limits.length ? html`<code>${limits[0]}</code>` : w("atOnce")}<span class="two"><code>${second}</code></span></td>
    <td class="opt"><${Text} of=${actionWords(rule.action)} most=${24} /><span class="two" title=${rule.source ?? undefined}>${showSource && rule.source ? clean(rule.source).split("/").pop() : ""}</span></td>
    <td class="r opt">${five && !rule.shadow ? html`<span class=${five.allowed ? "" : "zero"}>${f().num(five.allowed)}</span>` : ""}</td>
    <td class="num">${five ? html`<span class=${rule.shadow && denied ? "shadow" : hot ? "denied" : denied ? "" : "zero"}>${f().num(denied)}</span>
      ${denied > 0 && html`<span class="two">${rule.shadow ? w("rules.would") : isOwnAction(rule.action) ? html`<${Text} of=${rule.action} most=${16} />` : f().percent(denied, asked)}</span>`}` : ""}</td>
    <td class="r opt">${idle ? html`<span class="label">${w("rules.never")}</span>` : html`<div class="sp">${counts && html`<${Spark} denied=${rule.shadow ? counts.shadow : counts.denied} allowed=${counts.allowed} shadow=${rule.shadow} />`}</div>`}</td>
  </tr>`;
});
