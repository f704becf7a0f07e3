// Who is denied this second?

import { clean } from "../lib/text.js";
import { BY_HAND, isOfKoala, isOwnAction } from "../lib/verdict.js";
import { call } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { away, heard, noteAnswer, noteFailure, serverNow } from "../state/link.js";
import { usePolicy } from "../state/policy.js";
import { address, replaceQuery, route } from "../state/route.js";
import { logOuts, session } from "../state/session.js";
import { stats } from "../state/stats.js";
import { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { Lead, Subject, Text } from "../ui/basics.js";
import { Page } from "../ui/frame.js";
import { html, memo } from "../ui/html.js";
import { actionWords } from "../ui/rule_words.js";
import { fieldsOf, inspect, subjectText } from "../ui/subject_actions.js";
import { isLoud, summary } from "../ui/summary.js";
import { f, gap, w } from "../ui/words.js";

const EVERY_MS = 1000;
const MAX_ROWS = 500;
const ASKED_AT_ONCE = 200;
/** Fields that tell whom a ban by hand met, beside those that rules count by. */
const LIKELY = ["ip", "user", "key"];

/** The rows of a pause, `{ rule, state }`: who follows a row and goes back finds them, until the log-out. */
let held = null;
logOuts.watch(() => {
  held = null;
});

const isPaused = () => route.get().query.get("paused") === "1";
const setPaused = (next) => replaceQuery({ paused: next ? "1" : null });

export function Live() {
  const policy = usePolicy();
  const rates = useCell(summary);
  useCell(route);
  const rule = route.get().query.get("rule") ?? "";
  const paused = isPaused();
  // Words may be values of fields, which are not put in the address: the browser keeps them beside it.
  const [filter, setFilter] = useState(history.state?.words ?? "");
  const search = (words) => {
    history.replaceState({ words }, "");
    setFilter(words);
  };
  const current = useDenials(rule);
  // A pause keeps the rows that are shown; the newer ones are counted.
  if (!paused || held?.rule !== rule) held = null;
  if (paused && current.started) held ??= { rule, state: current };
  const { rows, lost, started } = held?.state ?? current;
  const pick = (name) => replaceQuery({ rule: name || null, paused: null });
  useEffect(() => {
    const key = (event) => {
      if (event.key !== "p" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, [role=dialog]")) return;
      setPaused(!isPaused());
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const names = useMemo(() => new Set((policy?.rules ?? []).map((each) => each.name)), [policy]);
  const counted = useMemo(() => new Set([...LIKELY, ...(policy?.rules ?? []).flatMap((each) => each.by ?? [])]), [policy]);
  const wanted = filter.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const matching = (list) => (wanted.length ? list.filter((row) => row.seq !== undefined && wanted.every((word) => textOf(row).includes(word))) : list);
  const found = matching(rows);
  const waiting = paused ? newer(matching(current.rows), rows) : 0;
  const shown = found.filter((row) => row.seq !== undefined).length;
  const right = rates && html`<span class="nowrap"><b class=${isLoud(rates, stats.get()) ? "denied" : ""}>${w("rate", { rate: f().rate(rates.denied) })}</b> <span class="muted">${w("live.denied")}<span class="hide">${w("live.denied.minute")}</span></span></span>`;
  return html`<${Page} title=${w("page.live")} right=${right}>
    <div class="tools">
      <span class="pick"><select aria-label=${w("rule")} value=${rule} onChange=${(event) => pick(event.target.value)}><option value="">${w("live.any")}</option><option value=${BY_HAND}>${w("bans.byHand")}</option>${(policy?.rules ?? []).map((each) => html`<option value=${each.name}>${each.name}</option>`)}</select>
        <svg viewBox="0 0 8 6" aria-hidden="true"><path d="M1 1l3 3.5L7 1" /></svg></span>
      <span class="search"><kbd>/</kbd><input class="in" data-search type="search" placeholder=${w("live.filter")} aria-label=${w("live.filter")} value=${filter} onInput=${(event) => search(event.target.value)} /></span>
      <button type="button" class="b" aria-pressed=${String(paused)} onClick=${() => setPaused(!paused)}>${!paused ? w("live.pause") : waiting ? w("live.go.new", { n: waiting < MAX_ROWS ? f().num(waiting) : `${f().num(MAX_ROWS)}+` }) : w("live.go")} <kbd>p</kbd></button>
      <span class="grow"></span>
      <span class="label">${w("live.foot", { n: shown, rows: f().num(shown), lost: f().num(lost) })}${gap()}<span class="wide-i">${w("live.enter")}</span></span>
    </div>
    ${rows.length > 0 && found.length === 0 && html`<p class="muted">${w("live.nothing")}</p>`}
    ${found.length > 0 && html`<div class="card"><table class="t fold live">
      <thead><tr><th>${w("time")}</th><th>${w("rule")}</th><th>${w("live.by")}</th><th>${w("action")}</th><th>${w("whom")}</th><th class="r">${w("live.wait")}</th><th class="r">${w("live.stands")}</th><th class="gap">${w("live.fields")}</th></tr></thead>
      <tbody>${found.map((row) => (row.seq === undefined ? html`<tr class="lost" key=${row.key}><td colspan="8"><span>${w("live.lost", { n: row.lost, lost: f().num(row.lost) })}</span></td></tr>` : html`<${Row} key=${row.seq} row=${row} known=${names.has(row.rule)} counted=${counted} language=${f().language} />`))}</tbody>
    </table></div>`}
    ${rows.length === 0 && started && html`<${Lead} sign="allowed">${w("live.none", { at: f().moment(stats.get()?.started ?? started, serverNow()) })}</${Lead}>`}
  </${Page}>`;
}

/** The newest denials, newest first; a gap where the ring was faster than this page. */
function useDenials(rule) {
  const [state, setState] = useState({ rows: [], lost: 0, started: null });
  const next = useRef(null);
  const gone = useCell(away) !== null;
  useEffect(() => {
    next.current = null;
    setState({ rows: [], lost: 0, started: null });
  }, [rule]);
  useEffect(() => {
    if (gone) return undefined;
    let [timer, stopped] = [null, false];
    const ask = async () => {
      let wait = EVERY_MS;
      if (!document.hidden && session.get()) {
        try {
          const query = new URLSearchParams({ limit: ASKED_AT_ONCE, ...(next.current === null ? {} : { after: next.current }), ...(rule && rule !== BY_HAND ? { rule } : {}) });
          const { body } = await call(`/v1/denials?${query}`);
          if (stopped) return;
          if (rule === BY_HAND) body.events = body.events.filter(isByHand);
          heard(body.now);
          noteAnswer();
          const first = next.current === null;
          // A smaller number than before: the server has started anew.
          next.current = body.next;
          setState((before) => merged(before, body, first));
        } catch (error) {
          if (!noteFailure(error) && error.retryAfter) wait = error.retryAfter * 1000;
        }
      }
      if (!stopped) timer = setTimeout(ask, wait);
    };
    ask();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [rule, gone]);
  return state;
}

function merged(before, body, first) {
  const fresh = [...body.events].sort((a, b) => b.seq - a.seq);
  // What was lost before this page began to look is not its loss.
  const lost = first ? 0 : body.lost;
  if (!fresh.length && !lost && before.started) return before;
  const gap = lost ? [{ key: `lost-${body.next}`, lost }] : [];
  return { rows: [...fresh, ...gap, ...before.rows].slice(0, MAX_ROWS), lost: before.lost + lost, started: before.started ?? body.now };
}

/** How many rows are newer than those that are shown. A server that has started anew counts from the beginning. */
function newer(rows, shown) {
  const numbered = (list) => list.filter((row) => row.seq !== undefined);
  const known = new Set(numbered(shown).map((row) => row.seq));
  return numbered(rows).filter((row) => !known.has(row.seq)).length;
}

const isByHand = (row) => row.by === "ban by hand";
const byWords = (row) => w(`by.${["limit", "rule", "ban"].includes(row.by) ? row.by : "hand"}`);

/** What the search looks at: all words of a row, in small letters. */
function textOf(row) {
  const fields = [...fieldsOf(row.subject), ...Object.entries(row.fields ?? {})].map((pair) => pair.join("="));
  return clean([f().clock(row.at, true), row.rule ?? (isByHand(row) ? w("bans.byHand") : ""), byWords(row), actionWords(row.action ?? ""), ...fields].join(" ")).toLowerCase();
}

/** The fields of a request that a ban by hand denied: those that may tell whom, and the others. */
function partsOf(fields, counted) {
  const all = Object.entries(fields ?? {});
  const whom = all.filter(([name]) => counted.has(name));
  return whom.length ? [Object.fromEntries(whom), Object.fromEntries(all.filter(([name]) => !counted.has(name)))] : [fields ?? {}, null];
}

const Row = memo(({ row, known, counted }) => {
  const fields = [...fieldsOf(row.subject), ...Object.entries(row.fields ?? {})];
  // A click inspects, unless it was on a link or marked some text.
  const open = () => inspect(fields, row.rule ?? null, fieldsOf(row.subject));
  const click = (event) => !event.target.closest("a") && getSelection().isCollapsed && open();
  // A ban by hand has no subject of a rule; the fields of the request tell whom it met.
  const [whom, others] = !row.rule && !fieldsOf(row.subject).length ? partsOf(row.fields, counted) : [row.subject, row.fields ?? {}];
  // Koala's rules tell no wait, and an action of the rule's own may end it at any time.
  const isUnknown = isOwnAction(row.action) || isOfKoala(row.rule);
  const wait = row.retry_after !== null && row.retry_after !== undefined ? f().countdown(row.retry_after) : isUnknown ? "–" : w("never");
  return html`<tr tabindex="0" aria-label=${w("inspect.of", { whom: subjectText(fieldsOf(whom).length ? whom : Object.fromEntries(fields)) })} onKeyDown=${(event) => event.key === "Enter" && event.target === event.currentTarget && open()} onClick=${click}>
    <td class="dim"><code>${f().clock(row.at, true)}.${Math.floor(row.at * 10) % 10}</code></td>
    <td class="of">${row.rule ? html`<a href=${isOfKoala(row.rule) && !known ? address("koala") : address("rules", row.rule)}><${Text} of=${row.rule} most=${40} /></a>` : isByHand(row) ? html`<a href=${address("bans")}>${w("bans.byHand")}</a>` : "–"}</td>
    <td class="l2">${byWords(row)}</td>
    <td class="opt"><${Text} of=${actionWords(row.action)} most=${24} /></td>
    <td class="whom"><${Subject} of=${whom} most=${48} /></td>
    <td class="r wait">${isOwnAction(row.action) && html`<span class="narrow-i"><${Text} of=${row.action} most=${16} /> </span>`}${wait}</td><td class="num opt">${row.stands_for > 1 ? `×${f().num(row.stands_for)}` : ""}</td>
    <td class="cut opt gap"><span class="muted">${others && html`<${Subject} of=${others} most=${64} />`}</span></td></tr>`;
});
