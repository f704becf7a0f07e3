// Who is banned, by whom, how long?

import { isWide, network } from "../lib/network.js";
import { clean, cut } from "../lib/text.js";
import { call } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { noteFailure, serverNow } from "../state/link.js";
import { usePoll } from "../state/poll.js";
import { address, route } from "../state/route.js";
import { say } from "../state/toast.js";
import { useEffect, useState } from "../vendor/hooks.js";
import { Command, FieldValue, Lead, Mistake, Notice, Segments, Subject, Text, Time, useNow, useRights } from "../ui/basics.js";
import { authorWords } from "../ui/author.js";
import { BanDialog } from "../ui/ban_dialog.js";
import { Dialog } from "../ui/dialog.js";
import { Page } from "../ui/frame.js";
import { html } from "../ui/html.js";
import { Share } from "../ui/small_drawings.js";
import { f, w } from "../ui/words.js";

const PAGE = 100;
const SETTLE_MS = 250;

export function Bans() {
  const asked = useCell(route).query.get("rule");
  const [typed, setTyped] = useState(asked ?? "");
  const [text, setText] = useState(typed);
  const [origin, setOrigin] = useState("any");
  const [pages, setPages] = useState([null]);
  const [dialog, setDialog] = useState(null);
  const [error, setError] = useState(null);
  const { write, view } = useRights();
  useEffect(() => {
    const timer = setTimeout(() => {
      setText(typed.trim());
      setPages([null]);
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const { data, again } = usePoll("/v1/bans/find", 5, { json: { text, origin, after: pages[pages.length - 1], limit: PAGE } });
  // The last answer stays until another question is answered.
  const [kept, setKept] = useState(null);
  useEffect(() => {
    if (data) setKept(data);
  }, [data]);
  const shown = data ?? kept;

  const lift = async (ban) => {
    try {
      await call(`/v1/bans/${encodeURIComponent(ban.id)}`, { method: "DELETE" });
      setError(null);
      const whom = clean(describe(ban)).slice(0, 64);
      say(w("bans.lifted", { whom }), ban.origin === "hand" ? { label: w("bans.again"), run: () => (isWideBan(ban) ? setDialog({ kind: "ban", start: [ban.field, ban.value], why: ban.reason ?? "" }) : banAgain(ban, again)) } : null);
      again();
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
  };
  const right = !view && html`<button type="button" class="b solid" disabled=${!write} onClick=${() => setDialog({ kind: "ban" })}>${w("bans.add")}</button>`;
  const tools = html`<div class="tools">
    <span class="search"><kbd>/</kbd><input class="in" data-search type="search" placeholder=${w("bans.search")} aria-label=${w("bans.search")} value=${typed} onInput=${(event) => setTyped(event.target.value)} /></span>
    <${Segments} label=${w("bans.origin")} value=${origin} pick=${(next) => {
      setOrigin(next);
      setPages([null]);
    }} options=${[{ value: "any", label: w("bans.all"), note: number(shown?.total) }, { value: "hand", label: w("origin.hand"), note: number(shown?.by_hand) }, { value: "rule", label: w("bans.rules"), note: number(shown && shown.total - shown.by_hand) }]} />
    <span class="grow"></span>
    ${!view && shown?.found > 1 && html`<button type="button" class="b" disabled=${!write} onClick=${() => setDialog({ kind: "all" })}>${w("bans.liftAll")}</button>`}
  </div>`;
  return html`<${Page} title=${w("page.bans")} right=${right}>
    ${shown && shown.complete === false && html`<${Notice} title=${w("bans.incomplete")}>${w("bans.incomplete.more")}</${Notice}>`}
    ${tools}
    <${Mistake} error=${error} />
    ${shown && (shown.bans.length ? html`<${Table} data=${shown} lift=${write && lift} pages=${pages} setPages=${setPages} />` : html`<${Empty} filtered=${Boolean(text) || origin !== "any"} />`)}
    ${dialog?.kind === "ban" && html`<${BanDialog} start=${dialog.start} why=${dialog.why} close=${() => setDialog(null)} done=${again} />`}
    ${dialog?.kind === "all" && html`<${LiftAll} text=${text} origin=${origin} found=${shown.found} close=${() => setDialog(null)} done=${again} />`}
  </${Page}>`;
}

const number = (value) => (value === undefined || value === null ? undefined : f().num(value));
const describe = (ban) => (ban.field ? `${ban.field}=${ban.value}` : Object.entries(ban.subject ?? {}).map((pair) => pair.join("=")).join(" "));

async function banAgain(ban, again) {
  const left = Math.max(1, Math.ceil(ban.until - serverNow()));
  await call("/v1/bans", { json: { field: ban.field, value: ban.value, for: `${left}s`, ...(ban.reason ? { reason: ban.reason } : {}) } }).catch(noteFailure);
  again();
}

/** A ban that deserves a second look is not imposed again by one click. */
function isWideBan({ field, value }) {
  const found = field === "ip" ? network(value) : null;
  return found !== null && isWide(found);
}

function Empty({ filtered }) {
  const { view } = useRights();
  if (filtered) return html`<p class="muted">${w("bans.nothing")}</p>`;
  return html`<${Lead} sign="allowed" more=${w(view ? "bans.none.view" : "bans.none.more")}>${w("bans.none")}</${Lead}>${!view && html`<${Command} text="flowgate ban ip=192.0.2.7 --for 1h --reason scraping" />`}`;
}

function Table({ data, lift, pages, setPages }) {
  const now = useNow();
  const first = (pages.length - 1) * PAGE;
  return html`<div class="card"><table class="t fold">
      <thead><tr><th class="keep">${w("bans.whom")}</th><th>${w("bans.originHead")}</th><th class="r keep">${w("bans.left")}</th><th></th><th class="r">${w("bans.until")}</th><th class="r">${w("sinceHead")}</th><th class="gap">${w("bans.reason")}</th><th></th></tr></thead>
      <tbody>${data.bans.map((ban) => html`<tr key=${ban.id}>
        <td class="whom">${ban.field ? html`<${FieldValue} field=${ban.field} value=${ban.value} most=${64} />` : html`<${Subject} of=${ban.subject} most=${64} />`}</td>
        <td class="l2">${ban.origin === "hand" ? html`<span class="strong">${w("origin.hand")}</span>${ban.author && html` <span class="muted">${cut(authorWords(ban.author), 48)}</span>`}` : html`<a href=${address("rules", ban.rule ?? "")}><${Text} of=${ban.rule ?? ""} most=${40} /></a>`}</td>
        <td class="num">${f().span(Math.max(0, Math.ceil(ban.until - now)))}</td>
        <td class="opt">${ban.since && html`<${Share} of=${(ban.until - now) / (ban.until - ban.since)} tone="quiet" />`}</td>
        <td class="r opt"><${Time} at=${ban.until} /></td>
        <td class="r dim opt"><${Time} at=${ban.since} /></td>
        <td class="cut dim gap l3" title=${ban.reason ? clean(ban.reason) : undefined}>${ban.reason ? html`<${Text} of=${ban.reason} />` : null}</td>
        <td class="acts l2">${lift && html`<button type="button" class="b" aria-label=${w("bans.lift.of", { whom: clean(describe(ban)).slice(0, 64) })} onClick=${() => lift(ban)}>${w("bans.lift")}</button>`}</td>
      </tr>`)}</tbody></table>
    <footer>${w("bans.page", { from: f().num(first + 1), to: f().num(first + data.bans.length), all: f().num(data.found) })}<span class="grow"></span>
      ${(pages.length > 1 || data.next) && html`<span class="pager"><button type="button" class="b" disabled=${pages.length === 1} onClick=${() => setPages(pages.slice(0, -1))}>${w("earlier")}</button>
        <button type="button" class="b" disabled=${!data.next} onClick=${() => setPages([...pages, data.next])}>${w("later")}</button></span>`}</footer></div>`;
}

/** Lifts all that were found, one call each. The number is typed, so that nobody lifts ten thousand by a slip. */
function LiftAll({ text, origin, found, close, done }) {
  const [typed, setTyped] = useState("");
  const [lifted, setLifted] = useState(null);
  const [error, setError] = useState(null);
  const good = typed.trim() === String(found);
  const liftAll = async () => {
    if (!good || lifted !== null) return;
    let count = 0;
    setLifted(0);
    try {
      for (;;) {
        const { body } = await call("/v1/bans/find", { json: { text, origin, after: null, limit: PAGE } });
        if (!body.bans.length || count >= found) break;
        for (const ban of body.bans.slice(0, found - count)) {
          await call(`/v1/bans/${encodeURIComponent(ban.id)}`, { method: "DELETE" });
          count += 1;
          setLifted(count);
        }
      }
      say(w("bans.liftedAll", { n: count, count: f().num(count) }));
      close();
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
    done();
  };
  return html`<${Dialog} title=${w("bans.liftAll")} close=${close} submit=${liftAll}
    footer=${html`<button type="button" class="b" onClick=${close}>${w("cancel")}</button><button class="b danger" disabled=${!good || lifted !== null}>${w("bans.liftAll.do", { n: found, count: f().num(found) })}</button>`}>
    <label class="field"><span>${w("bans.liftAll.type", { n: found })}</span><input class="in w8" inputmode="numeric" value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>
    ${lifted !== null && html`<p role="status">${w("bans.liftAll.done", { n: f().num(lifted), all: f().num(found) })}</p>`}
    <${Mistake} error=${error} />
  </${Dialog}>`;
}
