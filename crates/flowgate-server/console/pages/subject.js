// Why is this one denied, and until when?

import { isUnkept, parseFields, printFields, requestOf, startingFields } from "../lib/fields.js";
import { call } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { away, noteAnswer, noteFailure, serverNow } from "../state/link.js";
import { usePolicy } from "../state/policy.js";
import { address, handover, route } from "../state/route.js";
import { logOuts } from "../state/session.js";
import { say } from "../state/toast.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { Lead, Mistake, Notice, Text } from "../ui/basics.js";
import { Explanation } from "../ui/explanation.js";
import { Page } from "../ui/frame.js";
import { html } from "../ui/html.js";
import { gap, w, wx } from "../ui/words.js";

const WATCH_MS = 2000;
/** After the end of a wait the question is put once more, a little later than the wait. */
const MARGIN_MS = 60;
/** A limit that is full again is asked about no more often than this. */
const LEAST_RESET_MS = 1000;
/** Among so many denials of a rule the newest of a subject is looked for. */
const DENIALS_SEARCHED = 1000;

/** The last question, in memory only: who leaves the page and returns finds it, until the log-out. */
let last = null;
logOuts.watch(() => {
  last = null;
});

export function SubjectPage() {
  const policy = usePolicy();
  const given = useRef(takeGiven());
  const kept = useRef(given.current ? null : last).current;
  const [pairs, setPairs] = useState(given.current?.pairs ?? kept?.rows ?? null);
  const [cost, setCost] = useState(kept?.cost ?? "1");
  const [gate, setGate] = useState(kept?.gate ?? false);
  const [watch, setWatch] = useState(true);
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  // The rule of the page that led here, with the fields that it wants and that nobody knows.
  const [unknown, setUnknown] = useState(kept?.unknown ?? { rule: null, fields: [] });
  // Whom the page that led here has shown: the one to ban.
  const [looked, setLooked] = useState(kept?.looked ?? given.current?.subject ?? []);
  const rows = pairs ?? startingFields(policy?.rules ?? []).map((name) => [name, ""]);
  const missing = unknown.fields.filter((name) => rows.some((row) => row[0] === name && row[1] === ""));
  // What the answer on the page was asked for: typing does not change a question under way.
  const question = useRef(null);

  const put = async (body) => {
    question.current = body;
    try {
      const { body: found } = await call("/v1/explain", { json: body });
      noteAnswer();
      if (question.current !== body) return;
      setAnswer({ ...found, at: serverNow(), fields: Object.entries(body.fields) });
      setError(null);
    } catch (mistake) {
      if (noteFailure(mistake)) return;
      setAnswer(null);
      setError(mistake);
    }
  };
  const ask = () => {
    last = { rows, cost, gate, unknown, looked };
    put({ fields: filled(rows), ...(cost === "1" ? {} : { cost: Number(cost) }), ...(gate ? { gate: true } : {}) });
  };
  useEffect(() => {
    if (kept && !missing.length) ask();
  }, []);
  useEffect(() => {
    // Filled in by another page: complete the fields of its rule, then ask.
    if (!given.current || !policy) return;
    const { pairs: subject, rule, subject: own = [] } = given.current;
    given.current = null;
    completed(subject, policy.rules.find((each) => each.name === rule)).then((all) => {
      const fields = all.filter(([, value]) => value === "").map(([name]) => name);
      setPairs(all);
      setLooked(own);
      last = { rows: all, cost: "1", gate: false, unknown: { rule, fields }, looked: own };
      setUnknown({ rule, fields });
      // Without them the rule does not match, and the answer would be of other rules only.
      if (!fields.length) put({ fields: filled(all) });
    });
  }, [policy]);
  useAskAgain(answer, watch, () => question.current && put(question.current));

  const right = html`<button type="button" class="b bare hide" onClick=${() => copyLink(rows)}>${w("subject.copyLink")}</button>`;
  return html`<${Page} title=${w("page.subject")} right=${right}>
    <section class="card"><form class="pad fieldrow" onSubmit=${(event) => {
      event.preventDefault();
      ask();
    }}>
      <${Fields} rows=${rows} set=${setPairs} names=${policy?.fields ?? []} />
      <label class="pair cost"><span class="in w6">${w("subject.cost")}</span><input class="in w3" inputmode="numeric" aria-label=${w("subject.cost")} value=${cost} onInput=${(event) => setCost(event.target.value)} /></label>
      <label class="check"><input type="checkbox" checked=${gate} onChange=${() => setGate(!gate)} />${w("subject.gate")}</label>
      <span class="grow"></span>
      <label class="check"><input type="checkbox" checked=${watch} onChange=${() => setWatch(!watch)} />${w("subject.watch")}</label>
      <button class="b solid">${w("subject.ask")}</button>
    </form></section>
    <${Mistake} error=${error} />
    <${Unknown} rule=${unknown.rule} fields=${missing} />
    ${answer ? html`<${Explanation} answer=${answer} looked=${looked} again=${() => question.current && put(question.current)} />` : !error && html`<${Lead} more=${w("subject.empty.more")}>${w("subject.empty")}</${Lead}>`}
  </${Page}>`;
}

/** Tells which fields to fill in before the rule can match. */
function Unknown({ rule, fields }) {
  if (!fields.length) return null;
  const values = { n: fields.length, rule: html`<b><${Text} of=${rule} most=${40} /></b>`, fields: fields.map((name, i) => html`${i ? w("listComma") : ""}<code><${Text} of=${name} most=${40} /></code>`) };
  return html`<${Notice} title=${wx("subject.unknown", values)}>${wx("subject.unknown.more", values)}${fields.some(isUnkept) && html`${gap()}${w("subject.unkept")}`}</${Notice}>`;
}

/** The fields that have a name and a value. */
const filled = (rows) => Object.fromEntries(rows.filter(([name, value]) => name.trim() && value !== "").map(([name, value]) => [name.trim(), value]));

/** The fields of a request of this subject that the rule counts; of one that was denied, if there is one. */
async function completed(subject, rule) {
  if (!rule) return subject;
  try {
    const { body } = await call(`/v1/denials?${new URLSearchParams({ rule: rule.name, limit: DENIALS_SEARCHED })}`);
    return requestOf(subject, rule.when, body.events);
  } catch (mistake) {
    noteFailure(mistake);
    return requestOf(subject, rule.when, []);
  }
}

function takeGiven() {
  const handed = handover.fields;
  handover.fields = null;
  if (handed) return handed;
  const linked = route.get().query.get("fields");
  const pairs = linked && parseFields(linked);
  return pairs ? { pairs, rule: null, subject: [] } : null;
}

async function copyLink(rows) {
  const link = `${location.origin}${location.pathname}${address("subject", null, { fields: printFields(rows.filter(([name, value]) => name && value !== "")) })}`;
  await navigator.clipboard.writeText(link);
  say(w("subject.linkCopied"));
}

/** Rows of field and value; a pasted `act=reply user=42` or JSON fills them all. */
function Fields({ rows, set, names }) {
  const change = (i, at, value) => set(rows.map((row, j) => (j === i ? (at ? [row[0], value] : [value, row[1]]) : row)));
  const paste = (event, i) => {
    const found = parseFields(event.clipboardData.getData("text"));
    if (!found || (rows[i][0] && found.length === 1 && !event.clipboardData.getData("text").trim().startsWith("{"))) return;
    event.preventDefault();
    set(found);
  };
  return html`${rows.map(([name, value], i) => html`<span class="pair" role="group" aria-label=${name || w("field")} key=${i}>
      <input class="in w6" list="fields" aria-label=${w("field")} value=${name} onInput=${(event) => change(i, 0, event.target.value)} onPaste=${(event) => paste(event, i)} />
      <input class="in w12" aria-label=${name ? w("subject.valueOf", { field: name }) : w("value")} value=${value} onInput=${(event) => change(i, 1, event.target.value)} onPaste=${(event) => paste(event, i)} /></span>`)}
    <datalist id="fields">${names.map((name) => html`<option value=${name}></option>`)}</datalist>
    <button type="button" class="b bare" onClick=${() => set([...rows, ["", ""]])}>${w("subject.addField")}</button>`;
}

/** Asks again when a wait is over or a limit is full again, and every 2 s under "watch"; a hidden tab waits until it is seen. */
function useAskAgain(answer, watch, again) {
  const gone = useCell(away) !== null;
  useEffect(() => {
    if (!answer || gone) return undefined;
    const left = (wait) => Math.max(0, (answer.at + wait - serverNow()) * 1000) + MARGIN_MS;
    const isWait = (wait) => typeof wait === "number" && wait > 0;
    const resets = answer.rules.flatMap((rule) => rule.limits.map((limit) => limit.reset_after)).filter(isWait);
    const waits = [answer.decision.retry_after].filter((wait) => typeof wait === "number");
    const next = Math.min(...waits.map(left), ...resets.map((wait) => Math.max(left(wait), LEAST_RESET_MS)), watch ? WATCH_MS : Infinity);
    // Timers of browsers end at 2^31 ms.
    if (!Number.isFinite(next) || next > 2 ** 31 - 1) return undefined;
    const seen = () => document.hidden || again();
    const timer = setTimeout(() => (document.hidden ? addEventListener("visibilitychange", seen) : again()), next);
    return () => {
      clearTimeout(timer);
      removeEventListener("visibilitychange", seen);
    };
  }, [answer, watch, gone]);
}
