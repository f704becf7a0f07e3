// The login: over the page that was asked for, so that nothing of it is lost.

import { call, Refused } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { begin, loginReason } from "../state/session.js";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/hooks.js";
import { mistakeWords, Sign } from "./basics.js";
import { Brand } from "./brand.js";
import { html } from "./html.js";
import { LanguageButton, ThemeButton } from "./prefs_buttons.js";
import { f, gap, w } from "./words.js";

/** A login is awaited longer than data: nothing is on the page yet. */
const PATIENCE_MS = 15_000;

/** Trades a token for a key. The token is sent once, and kept nowhere. */
export async function logIn(token) {
  const { body } = await call("/v1/session", { json: { token }, anonymous: true, patience: PATIENCE_MS });
  begin({ key: body.key, until: body.until, view: body.rights === "view" });
}

/** True if the token would travel where others can read it. */
function isReadableOnTheWay() {
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname) || location.hostname.startsWith("127.");
  return location.protocol === "http:" && !local;
}

export function Login({ over }) {
  const [mistake, setMistake] = useState(null);
  const [busy, setBusy] = useState(false);
  const [left, setLeft] = useState(0);
  useEffect(() => {
    const timer = left > 0 && setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  const input = useRef(null);
  const reason = useCell(loginReason);
  useLayoutEffect(() => input.current.focus(), []);
  const send = async (event) => {
    event.preventDefault();
    const token = input.current.value.trim();
    if (!token || busy) return;
    setBusy(true);
    try {
      await logIn(token);
    } catch (error) {
      setMistake(error);
      setLeft(error.status === 429 ? error.retryAfter ?? 60 : 0);
      setBusy(false);
      input.current.focus();
      input.current.select();
    }
  };
  const form = html`<div class="login">
    <section class="card">
      <form class="pad" onSubmit=${send} autocomplete="off">
        <div class="node p0"><${Brand} /></div>
        <h1>${w("login")}</h1>
        ${reason === "ended" && html`<p class="muted">${w("login.ended")}</p>`}
        <label class=${`field ${mistake ? "bad" : ""}`}>
          <span>${w("login.token")}</span>
          <input class="in w100" type="password" ref=${input} autocomplete="off" spellcheck=${false} aria-invalid=${mistake ? "true" : undefined} />
          ${mistake && html`<span class="err" role="alert"><${Sign} kind="denied" /> ${words(mistake, left)}</span>`}
        </label>
        <button class="b solid center" disabled=${busy}>${w("login")}</button>
      </form>
      ${isReadableOnTheWay() && html`<footer><${Sign} kind="away" /><span>${w("login.plain")}</span></footer>`}
    </section>
    <p class="label center-t mt">${w("login.once")}${gap()}${w("login.find")}${gap()}<code>flowgate token</code></p>
    ${!over && html`<p class="center-t"><${ThemeButton} tone="b bare" /> <${LanguageButton} tone="b bare" /></p>`}
  </div>`;
  return over ? html`<div class="scrim over" role="dialog" aria-modal="true" aria-label=${w("login")}>${form}</div>` : html`<main class="plain">${form}</main>`;
}

function words(error, left) {
  if (!(error instanceof Refused)) return w("login.unanswered");
  if (error.status === 401 || error.status === 403) return w("login.wrong");
  if (error.status === 429) return left > 0 ? w("login.tooMany", { s: f().num(left) }) : w("login.again");
  return mistakeWords(error);
}
