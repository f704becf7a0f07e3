// The start card: nothing was asked yet. Send a request, watch it be denied, make it a rule.

import { requestOf } from "../lib/fields.js";
import { clean, cleanCode } from "../lib/text.js";
import { painted } from "../lib/toml.js";
import { call } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { noteFailure } from "../state/link.js";
import { usePolicy } from "../state/policy.js";
import { address } from "../state/route.js";
import { stats } from "../state/stats.js";
import { useState } from "../vendor/hooks.js";
import { Command, Lead, Mistake, Sign, useRights } from "../ui/basics.js";
import { html } from "../ui/html.js";
import { f, gap, w, wx } from "../ui/words.js";

const RULE = `[[rule]]
name   = "reply"
when   = { act = "reply", user = "*" }
by     = ["user"]
limits = ["5/60s"]
`;
const SHOWN = 6;

/** Rules are in force, and nothing was asked yet: how to ask them. */
export function Waiting() {
  const policy = usePolicy();
  const rule = policy?.rules.find((each) => each.by.length && !each.shadow) ?? policy?.rules[0];
  const known = (rule?.by ?? []).map((name) => [name, name === "ip" ? "192.0.2.7" : "42"]);
  // A value that cannot be told from the condition is for the reader to fill in.
  const fields = requestOf(known, rule?.when ?? [], []).map(([name, value]) => [name, value || "…"]);
  return html`<div class="start">
    <${Lead} more=${w("start.waiting.more")}>${w("start.waiting", { n: stats.get()?.rules ?? 0, count: f().num(stats.get()?.rules ?? 0) })}</${Lead}>
    ${rule && html`<section class="card mt"><header><h2>${wx("start.waiting.ask", { rule: html`<a href=${address("rules", rule.name)}><bdi>${clean(rule.name)}</bdi></a>` })}</h2></header><div class="pad stack">
      <${Command} text=${`curl ${location.host}/v1/take -H 'Content-Type: application/json' \\\n  -d ${quoted(JSON.stringify({ fields: Object.fromEntries(fields) }))}`} />
      <${Command} text=${`redis-cli -p ${respPort()} FG.TAKE 1 ${fields.map((pair) => pair.map(quoted).join(" ")).join(" ")}`} /></div></section>`}
  </div>`;
}

/** A word for a shell. */
const quoted = (word) => (/^[\w.:/@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** `begin` is called before the first request is sent. */
export function Start({ begin }) {
  const [key, setKey] = useState("user:42:reply");
  const [limit, setLimit] = useState("5/60s");
  const [sent, setSent] = useState([]);
  const [error, setError] = useState(null);
  const { write } = useRights();
  const hasFile = Boolean(useCell(stats)?.file_etag);
  const send = async (event) => {
    event.preventDefault();
    begin();
    try {
      const { body } = await call("/v1/limit", { json: { key, limit } });
      setSent((list) => [...list, body]);
      setError(null);
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
  };
  return html`<div class="start">
    <${Lead} more=${w("start.what")}>${w("start.title")}</${Lead}>
    <section class="card mt"><ol>
      <li><span class="step">1</span><form class="body" onSubmit=${send}><h2>${w("start.ask")}</h2>
        <div class="fieldrow">
          <label class="pair"><span class="in w6">${w("start.key")}</span><input class="in w16" aria-label=${w("start.key")} value=${key} onInput=${(event) => setKey(event.target.value)} /></label>
          <label class="pair"><span class="in w6">${w("start.limit")}</span><input class="in w8" aria-label=${w("start.limit")} value=${limit} onInput=${(event) => setLimit(event.target.value)} /></label>
          ${write && html`<button class="b solid">${sent.length ? w("start.again") : w("start.send")}</button>`}
          <span class="label">${sent.length > 0 && w("start.sent", { n: sent.length })}</span>
        </div>
        <${Mistake} error=${error} />
        ${sent.length > 0 && html`<${Sent} sent=${sent} limit=${limit} />`}
      </form></li>
      <li><span class="step">2</span><div class="body"><h2>${w("start.program")}</h2>
        <${Command} text=${`curl ${location.host}/v1/limit -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify({ key, limit })}'`} />
        <${Command} text=${`redis-cli -p ${respPort()} FG.LIMIT ${key} ${limit}`} /></div></li>
      <li><span class="step">3</span><div class="body"><h2>${w("start.rule")}</h2>
        <p class="muted">${wx(hasFile ? "start.rule.file" : "start.rule.noFile", { file: html`<code>flowgate.toml</code>` })}</p>
        <${Command} text=${RULE} block><${Painted} text=${RULE} /></${Command}>
        ${hasFile ? html`<div><a class="b" href=${address("edit")}>${w("page.edit")}</a></div>` : html`<${Command} text="flowgate serve --config flowgate.toml" />`}</div></li>
    </ol></section>
  </div>`;
}

function respPort() {
  return /:([1-9]\d*)"$/.exec(stats.get()?.settings?.["listen.resp"] ?? "")?.[1] ?? "7071";
}

const CLASSES = new Map([["head", "h"], ["key", "k"], ["comment", "c"], ["text", "v"]]);

/** A text of TOML in its colours. */
export const Painted = ({ text }) => text.trimEnd().split("\n").map((line, i) => html`${i ? "\n" : ""}${painted(line, []).map((piece) => html`<span class=${CLASSES.get(piece.kind)}>${cleanCode(piece.text)}</span>`)}`);

function Sent({ sent, limit }) {
  const last = sent[sent.length - 1];
  return html`<ul class="sent" aria-live="polite">${sent.slice(-SHOWN).map((answer, i) => html`<li key=${i + Math.max(0, sent.length - SHOWN)} class=${answer.allowed ? "" : "no"}>
      <span><${Sign} kind=${answer.allowed ? "allowed" : "denied"} />${answer.allowed ? w("allowed") : w("denied")}</span>
      ${answer.allowed ? w("start.left", { left: answer.remaining ?? "–", most: answer.limit ?? "–" }) : answer.retry_after ? w("passesIn", { wait: f().countdown(answer.retry_after) }) : w("never")}
    </li>`)}</ul>
    <p>${last.allowed
      ? html`<b class="allowed"><${Sign} kind="allowed" /> ${w("start.allowed")}</b>${gap()}${w("start.allowed.more", { left: last.remaining ?? "–" })}`
      : html`<b class="denied"><${Sign} kind="denied" /> ${w("start.denied")}</b>${gap()}${last.retry_after ? w("start.denied.more", { limit, wait: f().countdown(last.retry_after) }) : w("never")}`}</p>`;
}
