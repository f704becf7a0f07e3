// The frame of every page: the rail with the pages, the bar with the state, the room for the page.

import { draft, draftsElsewhere } from "../state/draft.js";
import { away, serverNow, tryNow } from "../state/link.js";
import { address, arrival, replaceQuery, route } from "../state/route.js";
import { sample } from "../state/sample.js";
import { cell, useCell } from "../state/cell.js";
import { end, logOuts } from "../state/session.js";
import { hasPage, restarted, stats } from "../state/stats.js";
import { wideBans } from "../state/wide_bans.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { Notice, Segments, Sign, useNow, useRights } from "./basics.js";
import { Brand } from "./brand.js";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { showKeys } from "./keys.js";
import { Paused } from "./pause.js";
import { isLoud, summary } from "./summary.js";
import { LanguageButton, ThemeButton } from "./prefs_buttons.js";
import { f, gap, w } from "./words.js";

const PAGES = [["", "live", "rules", "subject", "bans"], ["edit", "try"], ["store", "koala"]];

/** The rail. Below 720 px it is a menu. */
export function Rail({ open, close }) {
  const { page } = useCell(route);
  const now = useCell(stats);
  const rates = useCell(summary);
  const hasDraft = useCell(draft) !== null;
  const { view } = useRights();
  const counts = new Map([
    ["live", rates && rates.denied > 0 ? `${f().rate(rates.denied)}${w("perSecond")}` : null],
    ["rules", now && f().num(now.rules)],
    ["bans", now?.bans ? f().num(now.bans.hand + now.bans.rules) : null],
    ["edit", hasDraft ? w("draft") : null],
  ]);
  const link = (name) => html`<li key=${name}><a href=${address(name)} aria-current=${name === page ? "page" : undefined} onClick=${close}>
    ${w(`page.${name || "overview"}`)}${counts.get(name) && html`<small class=${name === "live" && rates && isLoud(rates, now) ? "denied" : ""}>${counts.get(name)}</small>`}</a></li>`;
  const pages = PAGES.map((group) => group.filter(hasPage));
  return html`<nav class=${`rail ${open ? "open" : ""}`} aria-label=${w("pages")}>
    <div class="in-rail">
      <div class="node"><${Brand} node=${now?.node ?? "Flowgate"} version=${now?.version} /></div>
      ${pages.map((group) => html`<ul>${group.map(link)}</ul>`)}
      <ul class="foot">
        <li><${ThemeButton} /></li>
        <li><${LanguageButton} /></li>
        <li><button type="button" onClick=${() => showKeys()}>${w("keys")}<small><kbd>?</kbd></small></button></li>
        <li><button type="button" onClick=${() => {
          close();
          leave();
        }}>${w("logOut")}${view && html`<small>${w("viewOnly")}</small>`}</button></li>
      </ul>
    </div>
  </nav>`;
}

/** The drafts that a log-out would end, as `{ here, elsewhere }`, while it asks; null: nobody is asked. */
const leaving = cell(null);
logOuts.watch(() => leaving.set(null));

/** Logs out of all tabs, after a question where one of them has a draft. */
async function leave() {
  const [here, elsewhere] = [draft.get() !== null, await draftsElsewhere()];
  if (here || elsewhere) leaving.set({ here, elsewhere });
  else end();
}

export function Leaving() {
  const close = () => leaving.set(null);
  const drafts = useCell(leaving);
  return drafts && html`<${Dialog} title=${w("leave.title")} close=${close} submit=${end}
    footer=${html`<button type="button" class="b" data-first onClick=${close}>${w("cancel")}</button><button class="b danger">${w("leave.do")}</button>`}>
    ${drafts.here && html`<p>${w("leave.what")} <a href=${address("edit")} onClick=${close}>${w("page.edit")}</a></p>`}
    ${drafts.elsewhere > 0 && html`<p>${w("leave.elsewhere", { n: drafts.elsewhere })}</p>`}
  </${Dialog}>`;
}

/** The bar, and the page below it. `heading` stands in the h1, `title` in the window's title. `saysPaused`: the page itself tells of a pause. */
export function Page({ title, heading, right, saysPaused = false, children }) {
  const h1 = useRef(null);
  const gone = useCell(away);
  const node = useCell(stats)?.node;
  const { page, name } = useCell(route);
  useEffect(() => {
    document.title = `${title} · ${node ?? "Flowgate"} · Flowgate`;
  }, [title, node]);
  useEffect(() => {
    // Not at the first page: the reader begins at the top of the document.
    if (visited) h1.current.focus();
    // The browser stays where the page before was scrolled to.
    if (visited && arrival.kind !== "traverse") scrollTo(0, 0);
    visited = true;
  }, [page, name]);
  return html`
    <div class="bar">
      <${MenuButton} />
      <h1 tabindex="-1" ref=${h1}>${heading ?? title}</h1>
      <${State} />
      <span class="grow"></span>
      ${right}
    </div>
    <main id="main">
      <${AwayNotice} />
      <${Restarted} />
      ${!saysPaused && html`<${Paused} />`}
      <${WideBan} />
      <div class=${gone ? "aged stackm" : "stackm"}>${children}</div>
    </main>`;
}
let visited = false;

/** Set by the app: opens the menu on narrow screens. */
export const menu = { toggle: () => {}, isOpen: false };
const MenuButton = () => html`<button type="button" class="menu" aria-label=${w("menu")} aria-expanded=${String(menu.isOpen)} onClick=${() => menu.toggle()}>
  <svg viewBox="0 0 18 18" aria-hidden="true"><path d="M2 5h14M2 9h14M2 13h14" stroke="currentColor" stroke-width="1.5" /></svg></button>`;

/** One state, with a sign and words; and `rules broken` while the file on disk is wrong. */
function State() {
  const now = useCell(stats);
  const gone = useCell(away);
  const recording = useCell(sample)?.state === "recording";
  return html`${gone ? html`<${AwayState} />` : now && html`<${Health} now=${now} />`}
    ${now?.broken && html`<a class="state wrong" href=${address("rules")}><${Sign} kind="denied" /><span>${w("state.broken")}<span class="hide">${now.broken.since ? ` ${w("since", { at: f().clock(now.broken.since) })}` : ""}</span></span></a>`}
    ${recording && html`<a class="state" href=${address("try")}><${Sign} kind="shadow" tone="shadow" /><span>${w("state.recording")}</span></a>`}`;
}

function Health({ now }) {
  const state = now.state ?? "ready";
  if (state === "ready") return html`<span class="state" role="status"><${Sign} kind="allowed" /><span>${w("state.ready")}</span></span>`;
  return html`<span class="state warn" role="status"><${Sign} kind="away" /><span>${w(`state.${state}`)}<span class="hide">${now.missing ? html`${w("colon")}${now.missing === "redis away" ? w("missing.redis") : html`<span lang="en">${now.missing}</span>`}` : ""}${now.since ? ` ${w("since", { at: f().clock(now.since) })}` : ""}</span></span></span>`;
}

function AwayState() {
  const gone = useCell(away);
  useNow();
  if (!gone) return null;
  return html`<span class="state warn" role="status"><${Sign} kind="away" /><span>${w("state.away")}<span class="hide"> ${w("since", { at: f().clock(gone.since, true) })}${w("listComma")}${w("away.again")}</span> ${f().countdown(Math.ceil(Math.max(1, gone.next - serverNow()))).replace(".0", "")}</span></span>`;
}

function AwayNotice() {
  const gone = useCell(away);
  const now = useNow(gone !== null);
  const kept = useCell(draft) !== null;
  if (!gone) return null;
  const left = Math.max(1, Math.ceil(gone.next - now));
  return html`<${Notice} title=${w("away.title", { at: f().clock(gone.since, true), age: Math.max(1, Math.round(now - gone.since)) })}
    action=${html`<button type="button" class="b" onClick=${tryNow}>${w("away.now")}</button>`}>${w("away.next", { s: left })}${gap()}${w(kept ? "away.draft" : "away.write")}</${Notice}>`;
}

function Restarted() {
  const at = useCell(restarted);
  if (!at) return null;
  return html`<${Notice} title=${w("restarted.title", { at: f().clock(at, true) })} action=${html`<button type="button" class="b" onClick=${() => restarted.set(null)}>${w("seen")}</button>`}>${w(stats.get()?.store?.durable ? "restarted.durable" : "restarted.more")}</${Notice}>`;
}

/** A ban that denies nearly everybody is told on every page while it holds. */
function WideBan() {
  const all = useCell(wideBans);
  const { page } = useCell(route);
  const now = useNow(all.length > 0);
  const ban = all.find((each) => each.until > now);
  if (!ban) return null;
  const whom = ban.prefix === 0 ? w("wide.every", { version: ban.version }) : `ip=${ban.value}`;
  return html`<${Notice} kind="wrong" title=${w("wide.title", { whom, at: f().moment(ban.until, now) })} action=${page !== "bans" && html`<a class="b" href=${address("bans")}>${w("open.bans")}</a>`}>${ban.since ? w("wide.more", { since: f().moment(ban.since, now), value: ban.value }) : `ip=${ban.value}`}</${Notice}>`;
}

export const RANGES = ["5m", "1h", "24h"];
/** How often a range is asked for, in seconds. */
export const RANGE_EVERY = new Map([["5m", 1], ["1h", 10], ["24h", 60]]);

/** The range of the address. */
export function useRange() {
  const asked = useCell(route).query.get("range");
  return RANGES.includes(asked) ? asked : "1h";
}

export const RangeChoice = ({ range }) => html`<${Segments} label=${w("range")} value=${range} pick=${(next) => replaceQuery({ range: next })}
  options=${RANGES.map((each) => ({ value: each, label: w(`range.${each}`) }))} />`;

/** The toast, drawn by the app. */
export function Toast({ shown, dismiss }) {
  const [text, setText] = useState(null);
  useEffect(() => setText(shown), [shown]);
  if (!text) return null;
  return html`<div class="toast" role="status"><span>${text.text}</span>${text.action && html`<button type="button" class="link" onClick=${() => {
    dismiss();
    text.action.run();
  }}>${text.action.label}</button>`}</div>`;
}
