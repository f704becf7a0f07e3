// The small parts of every page.

import { clean, cut, MAX_SHOWN } from "../lib/text.js";
import { pairs } from "../lib/verdict.js";
import { useEffect, useState } from "../vendor/hooks.js";
import { useCell } from "../state/cell.js";
import { away, serverNow } from "../state/link.js";
import { session } from "../state/session.js";
import { Answer } from "./answers.js";
import { html } from "./html.js";
import { f, gap, w } from "./words.js";

/** One of the five signs: allowed, denied, shadow, away, ok. */
export const Sign = ({ kind, tone = "" }) => html`<svg class=${`sign ${tone}`} aria-hidden="true"><use href=${`#s-${kind}`} /></svg>`;

/** A text of the internet: its misleading characters shown, its direction its own, cut with the whole in the title. */
export function Text({ of, most = MAX_SHOWN }) {
  const whole = clean(of);
  const shown = cut(whole, most);
  return html`<bdi title=${shown === whole ? undefined : cut(whole, 4000)}>${shown}</bdi>`;
}

/** `ip=203.0.113.77`. */
export const FieldValue = ({ field, value, most }) =>
  html`<code><span class="f"><${Text} of=${field} most=${40} />=</span><${Text} of=${value} most=${most} /></code>`;

/** All fields of a subject; a rule without `by` has none. */
export function Subject({ of, most }) {
  const found = typeof of === "string" ? null : pairs(of);
  if (!found) return html`<code><${Text} of=${of} most=${most} /></code>`;
  if (!found.length) return html`<span class="muted">${w("subject.everyone")}</span>`;
  return found.map(([field, value], i) => html`${i ? " " : ""}<${FieldValue} field=${field} value=${value} most=${most} />`);
}

/** The time of day in the local zone, UTC in the title. */
export function Time({ at, seconds = false }) {
  if (at === null || at === undefined) return "–";
  return html`<time title=${f().utc(at)}>${seconds ? f().clock(at, true) : f().moment(at, serverNow())}</time>`;
}

export const Card = ({ title, head, foot, children, tone = "", label }) => html`
  <section class=${`card ${tone}`} aria-label=${label}>
    ${title && html`<header><h2>${title}</h2><span class="grow"></span>${head}</header>`}
    ${children}
    ${foot && html`<footer><span>${foot}</span></footer>`}
  </section>`;

/** The strip of numbers: `cells` of `{ label, sign, value, unit, note, tone }`. */
export const Strip = ({ cells }) => html`
  <dl class=${`card strip n${cells.length}`}>
    ${cells.map((cell) => html`<div>
      <dt>${cell.sign && html`<${Sign} kind=${cell.sign} tone=${cell.sign} />`}${cell.label}</dt>
      <dd class="n"><span class=${cell.tone ?? ""}>${cell.value}</span>${cell.unit && html`<small>${cell.unit}</small>`}</dd>
      <dd class="s" title=${typeof cell.note === "string" ? cell.note : undefined}>${cell.note || "\u00a0"}</dd>
    </div>`)}
  </dl>`;

/** The one sentence of a page, what is below it, and what one does next. */
export const Lead = ({ sign, tone, children, more, actions }) => html`
  <div class="verdict">
    <div class="words">
      <p class="lead">${sign && html`<${Sign} kind=${sign} tone=${tone ?? sign} />`}${children}</p>
      ${more && html`<p class=${sign ? "more" : "more p0"}>${more}</p>`}
    </div>
    ${actions && html`<div class="actions">${actions}</div>`}
  </div>`;

export const Notice = ({ kind = "warn", title, children, action }) => html`
  <div class=${`notice ${kind}`}>
    <${Sign} kind=${kind === "warn" ? "away" : "denied"} />
    <div><b>${title}</b>${children && html`<br /><span class="muted">${children}</span>`}</div>
    ${action}
  </div>`;

/** A choice of two to four. */
export const Segments = ({ label, options, value, pick }) => html`
  <div class="seg" role="group" aria-label=${label}>
    ${options.map((option) => html`<button type="button" aria-pressed=${String(option.value === value)} onClick=${() => pick(option.value)}>
      ${option.label}${option.note !== undefined && html`<small>${option.note}</small>`}
    </button>`)}
  </div>`;

/** A line to copy. */
export function Command({ text, block = false, children }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
  };
  const button = html`<button type="button" class="b bare" onClick=${copy}>${done ? w("copied") : w("copy")}</button>`;
  return html`<pre class=${block ? "code" : "cmd"}><span>${children ?? text}</span>${button}</pre>`;
}

/** The server's time, once a second while it answers. */
export function useNow(active = true) {
  const [, draw] = useState(0);
  useEffect(() => {
    if (!active) return undefined;
    const timer = setInterval(() => document.hidden || draw((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return serverNow();
}

/** What this login may do now: `write`: it may and the server is there; `view`: it may never write. */
export function useRights() {
  const view = useCell(session)?.view ?? false;
  const gone = useCell(away) !== null;
  return { view, write: !view && !gone, away: gone };
}

/** The plain sentence of a mistake. */
export const Mistake = ({ error }) => error && html`<p class="denied err" role="alert"><${Sign} kind="denied" tone="denied" /> ${mistakeWords(error)}</p>`;

export function mistakeWords(error) {
  if (!error.status) return w("error.unknown");
  const said = { text: error.message, code: error.body?.code, values: error.body?.values };
  if (error.status === 403) return html`${w("error.forbidden")} <${Answer} ...${said} />`;
  const stopped = (words) => `${words.replace(/[.。]$/, "")}${w("stop")}`;
  if (error.status === 429 || error.status === 503) return html`<${Answer} ...${said} end=${stopped} />${error.retryAfter ? `${gap()}${w("error.again", { s: error.retryAfter })}` : ""}`;
  return html`<${Answer} ...${said} text=${error.field && !error.message.startsWith(`${error.field} `) ? `${error.field}: ${error.message}` : error.message} />`;
}
