// The console. This file starts it: preferences, login, the sources of every page, and the page that the address names.

import { Unanswered } from "./state/api.js";
import { useCell } from "./state/cell.js";
import { away, noteFailure } from "./state/link.js";
import { applyPrefs, language } from "./state/prefs.js";
import { readAddress, route } from "./state/route.js";
import { watchSample } from "./state/sample.js";
import { askOtherTabs, loginReason, session, takeTokenFromAddress } from "./state/session.js";
import { watchStats } from "./state/stats.js";
import { dismiss, spoken, toast } from "./state/toast.js";
import { watchWideBans } from "./state/wide_bans.js";
import { Overview } from "./pages/overview.js";
import { BanDialog } from "./ui/ban_dialog.js";
import { Leaving, menu, Page, Rail, Toast } from "./ui/frame.js";
import { html } from "./ui/html.js";
import { Keys, listenToKeys } from "./ui/keys.js";
import { Login, logIn } from "./ui/login.js";
import { banning } from "./ui/subject_actions.js";
import { watchSummary } from "./ui/summary.js";
import { loadWords, w } from "./ui/words.js";
import { useEffect, useState } from "./vendor/hooks.js";
import { render } from "./vendor/preact.js";

/** The pages. All but the first are loaded when they are first looked at, so that the first visit is small. */
const PAGES = new Map([
  ["", async () => Overview],
  ["live", async () => (await import("./pages/live.js")).Live],
  ["rules", async () => (await import("./pages/rules.js")).Rules],
  ["rule", async () => (await import("./pages/rule.js")).Rule],
  ["subject", async () => (await import("./pages/subject.js")).SubjectPage],
  ["bans", async () => (await import("./pages/bans.js")).Bans],
  ["edit", async () => (await import("./pages/editor.js")).Editor],
  ["try", async () => (await import("./pages/try.js")).Try],
  ["store", async () => (await import("./pages/store.js")).Store],
  ["koala", async () => (await import("./pages/koala.js")).Koala],
]);
const loaded = new Map([["", Overview]]);

/** The component of a page; the empty frame while it is on its way, and again when the server is back. */
function usePage(name) {
  const gone = useCell(away) !== null;
  const [, draw] = useState(null);
  useEffect(() => {
    if (loaded.has(name) || !PAGES.has(name) || gone) return;
    PAGES.get(name)().then((page) => {
      loaded.set(name, page);
      draw({});
    }, () => noteFailure(new Unanswered()));
  }, [name, gone]);
  return PAGES.has(name) ? loaded.get(name) ?? Waiting : Missing;
}

const Waiting = () => html`<${Page} title="\u00a0" />`;

function App() {
  const { page, name } = useCell(route);
  const loggedIn = useCell(session) !== null;
  const ended = useCell(loginReason) === "ended";
  const shown = useCell(toast);
  const [open, setOpen] = useState(false);
  useCell(language);
  menu.toggle = () => setOpen(!open);
  menu.isOpen = open;
  useEffect(() => {
    if (!open) return undefined;
    document.querySelector("nav.rail a")?.focus();
    const leave = (event) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      document.querySelector("button.menu")?.focus();
    };
    addEventListener("keydown", leave);
    return () => removeEventListener("keydown", leave);
  }, [open]);
  const Shown = usePage(page === "rules" && name !== null ? "rule" : page);
  // The page stays below a login that has ended; it goes when somebody logs out.
  if (!loggedIn && !ended) return html`<${Login} />`;
  return html`
    <a class="skip" href="#main" onClick=${skip}>${w("skip")}</a>
    <${Rail} open=${open} close=${() => setOpen(false)} />
    ${open && html`<div class="scrim below-menu" onPointerDown=${() => setOpen(false)}></div>`}
    <${Shown} key=${`${page}/${name ?? ""}`} name=${name} />
    <${Toast} shown=${shown} dismiss=${dismiss} />
    <${Keys} />
    <${Banning} />
    <${Leaving} />
    ${!loggedIn && html`<${Login} over />`}
    <${Spoken} />`;
}

function Banning() {
  const start = useCell(banning);
  return start && html`<${BanDialog} start=${start} close=${() => banning.set(null)} />`;
}

/** The address belongs to the pages, so the link moves the focus itself. */
function skip(event) {
  event.preventDefault();
  document.querySelector("h1").focus();
}

const Spoken = () => html`<div class="unseen" aria-live="polite">${useCell(spoken)}</div>`;

const Missing = () => html`<${Page} title=${w("missing.title")}><p>${w("missing.more")} <a href="#/">${w("page.overview")}</a></p></${Page}>`;

async function start() {
  applyPrefs();
  await loadWords(language.get());
  listenToKeys();
  const token = takeTokenFromAddress();
  readAddress();
  if (token) await logIn(token).catch(() => {});
  else askOtherTabs();
  watchStats();
  watchSummary();
  watchSample();
  watchWideBans();
  render(html`<${App} />`, document.getElementById("app"));
}

start();
