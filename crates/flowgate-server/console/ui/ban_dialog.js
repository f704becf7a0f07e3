// The dialog that bans by hand. It warns of what is probably not meant; the server decides what is allowed.

import { isLength, isNoAddress } from "../lib/ban_order.js";
import { holds, isWide, needsWide, network } from "../lib/network.js";
import { clean, cut } from "../lib/text.js";
import { call } from "../state/api.js";
import { noteFailure } from "../state/link.js";
import { usePolicy } from "../state/policy.js";
import { stats } from "../state/stats.js";
import { say } from "../state/toast.js";
import { useState } from "../vendor/hooks.js";
import { Answer } from "./answers.js";
import { Mistake, Notice, Segments } from "./basics.js";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { f, gap, w } from "./words.js";

const LENGTHS = ["10m", "1h", "1d"];

/** @param choices pairs to choose the field from; start: the pair that is filled in, else the field that most rules count by; why: the reason that is filled in */
export function BanDialog({ start = null, choices = [], why = "", close, done }) {
  const policy = usePolicy();
  const [typed, setField] = useState(start?.[0] ?? null);
  const field = typed ?? usualField(policy);
  const [value, setValue] = useState(start?.[1] ?? "");
  const [length, setLength] = useState("1h");
  const [other, setOther] = useState(null);
  const [reason, setReason] = useState(why);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const chosen = other ?? length;
  const pickField = (name) => {
    setField(name);
    const known = choices.find(([each]) => each === name);
    if (known) setValue(known[1]);
  };
  const found = field === "ip" ? network(value) : null;
  // What the server would refuse is told while it is typed.
  const wrong = { value: field === "ip" && isNoAddress(value), length: other !== null && !isLength(other) };
  const stopped = !field || value === "" || wrong.value || wrong.length || busy;
  const ban = async () => {
    if (stopped) return;
    setBusy(true);
    try {
      const { body } = await call("/v1/bans", { json: { field, value: found ? value.trim() : value, for: chosen, ...(reason ? { reason } : {}) } });
      const words = w("ban.done", { whom: `${clean(field)}=${cut(clean(value), 64)}` });
      // What the server warns of may be a reason to take the ban back.
      if (body.warning) say(html`${words}${gap()}<${Answer} text=${body.warning} ...${body.warning_code} />`, { label: w("bans.lift.this"), run: () => lift(body.id, done) });
      else say(words);
      close();
      done?.();
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
      setBusy(false);
    }
  };
  const many = found && found.addresses > 1;
  const label = many ? w("ban.do.many", { n: f().num(found.addresses), length: lengthWords(chosen) }) : w("ban.do", { length: lengthWords(chosen) });
  return html`<${Dialog} title=${w("ban.title")} close=${close} submit=${ban}
    footer=${html`<button type="button" class="b" onClick=${close}>${w("cancel")}</button><button class="b danger" disabled=${stopped}>${label}</button>`}>
    <div class="fieldrow top">
      <label class="field"><span>${w("ban.field")}</span><input class="in w8" list="ban-fields" value=${field} onInput=${(event) => pickField(event.target.value)} /></label>
      <label class=${`field grow ${wrong.value ? "bad" : ""}`}><span>${w("ban.value")}</span><input class="in w100" data-first value=${value} aria-invalid=${wrong.value ? "true" : undefined} onInput=${(event) => setValue(event.target.value)} /></label>
      <datalist id="ban-fields">${[...new Set([...choices.map(([name]) => name), ...(policy?.fields ?? [])])].map((name) => html`<option value=${name}></option>`)}</datalist>
    </div>
    ${wrong.value && html`<p class="denied err" role="alert">${w("ban.noAddress")}</p>`}
    ${field !== "ip" && network(value) && html`<${Notice} title=${w("ban.isAddress", { value: cut(clean(value), 48), field: clean(field) })} action=${html`<button type="button" class="b" onClick=${() => setField("ip")}>${w("ban.useAddress", { value: cut(clean(value.trim()), 48) })}</button>`} />`}
    <${Warnings} field=${field} found=${found} fields=${policy?.fields} />
    <div class="field"><span>${w("ban.for")}</span><div class="fieldrow"><${Segments} label=${w("ban.for")} value=${other === null ? length : "other"} pick=${(next) => {
      setOther(next === "other" ? length : null);
      if (next !== "other") setLength(next);
    }} options=${[...LENGTHS.map((each) => ({ value: each, label: lengthWords(each) })), { value: "other", label: w("ban.other") }]} />
      ${other !== null && html`<input class="in w8" aria-label=${w("ban.length")} placeholder="90m" value=${other} aria-invalid=${wrong.length ? "true" : undefined} onInput=${(event) => setOther(event.target.value)} />`}</div>
      ${wrong.length && html`<span class="err" role="alert">${w("ban.noLength")}</span>`}</div>
    <label class="field"><span>${w("ban.reason")}</span><input class="in w100 sans" value=${reason} onInput=${(event) => setReason(event.target.value)} /></label>
    <p class="label">${w("ban.what")}${gap()}${w(stats.get()?.store?.type === "redis" ? "ban.what.shared" : "ban.what.memory")}${gap()}${w("same")} <code class="whole">flowgate ban ${quoted(clean(`${field}=${value}`))} --for ${chosen}${found && needsWide(found) ? " --wide" : ""}${reason && ` --reason ${quoted(clean(reason))}`}</code></p>
    <${Mistake} error=${error} />
  </${Dialog}>`;
}

async function lift(id, done) {
  await call(`/v1/bans/${encodeURIComponent(id)}`, { method: "DELETE" }).catch(noteFailure);
  done?.();
}

/** The field that most rules count by, as whoever is banned is usually whom they count. */
function usualField(policy) {
  const counts = new Map();
  for (const name of (policy?.rules ?? []).flatMap((rule) => rule.by ?? [])) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? policy?.fields?.[0] ?? "";
}

/** A text as one word of a shell. */
const quoted = (text) => (/^[\w.:/=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const lengthWords = (length) => (["10m", "1h", "1d"].includes(length) ? w(`length.${length}`) : length);

function Warnings({ field, found, fields }) {
  // A list of texts in TOML is one in JSON.
  const proxies = JSON.parse(stats.get()?.settings?.["gate.trusted_proxies"] ?? "[]").map(network).filter(Boolean);
  const proxy = found && proxies.find((each) => holds(found, each) || holds(each, found));
  return html`
    ${found && isWide(found) && html`<${Notice} title=${w("ban.wide", { prefix: found.prefix, n: f().num(found.addresses) })}>${w("ban.wide.more", { least: found.version === 4 ? 16 : 32 })}</${Notice}>`}
    ${proxy && html`<${Notice} title=${w("ban.proxy")}>${w("ban.proxy.more")}</${Notice}>`}
    ${field && fields && !fields.includes(field) && html`<${Notice} title=${w("ban.unused", { field: clean(field) })}>${w("ban.unused.more")}</${Notice}>`}`;
}
