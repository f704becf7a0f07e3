// The history of the rules: versions with time, note and size, the difference to each, and the way back.

import { clean } from "../lib/text.js";
import { call } from "../state/api.js";
import { noteFailure, serverNow } from "../state/link.js";
import { usePoll } from "../state/poll.js";
import { say } from "../state/toast.js";
import { useState } from "../vendor/hooks.js";
import { authorWords } from "./author.js";
import { Card, Mistake, mistakeWords, Text, Time, useRights } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Difference } from "./difference.js";
import { html } from "./html.js";
import { MAX_NOTE, noteHeader } from "./publish.js";
import { f, w, wx } from "./words.js";

const SHOWN = 5;

/** @param props current: the text in force, etag: its ETag, compare(title, before, after): shows a difference; the text in force stands for a missing `after`, changed(): read anew */
export function Versions({ etag, compare, changed }) {
  const { data, again } = usePoll("/v1/rules/history", 10);
  const [all, setAll] = useState(false);
  const [back, setBack] = useState(null);
  const [error, setError] = useState(null);
  const { write, view } = useRights();
  const versions = [...(data?.versions ?? [])].sort((a, b) => b.version - a.version);
  const shown = all ? versions : versions.slice(0, SHOWN);
  const same = sameAsNewest(versions);
  const textOf = async (version) => (await call(`/v1/rules/history/${version.version}`)).body;
  // With what is in force, or a version with the one before it.
  const show = async (version, before = null) => {
    try {
      if (before) compare(w("history.changed", { version: version.version, before: before.version }), await textOf(before), await textOf(version));
      else compare(w("history.compared", { version: version.version }), await textOf(version));
      setError(null);
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
  };
  const rolled = () => {
    again();
    changed();
  };
  return html`<${Card} title=${w("history")} head=${versions.length > SHOWN && html`<button type="button" class="b bare" onClick=${() => setAll(!all)}>${all ? w("fold") : w("history.all", { n: versions.length })}</button>`}>
    ${versions.length === 0 ? html`<p class="pad muted">${data ? w("history.none") : "\u00a0"}</p>` : html`<table class="t fold">
      <thead><tr><th>${w("history.version")}</th><th>${w("history.published")}</th><th>${w("history.note")}</th><th></th></tr></thead>
      <tbody>${shown.map((version, i) => html`<tr key=${version.version}><td class="strong">v${version.version}</td><td class="dim l2">${isFoundLater(version, versions) ? wx("history.before", { at: html`<${Time} at=${version.time} />` }) : html`<${Time} at=${version.time} />`}<div class="label wide" title=${w("history.size")}>${f().bytes(version.bytes).join(" ")}</div></td>
        <td class="note l3">${version.restores && html`<span class="tag">${w("history.again", { version: version.restores })}</span> `}<${Text} of=${version.note ?? ""} />${version.author && html`<div class="label" title=${version.author.agent ? clean(version.author.agent) : undefined}>${authorWords(version.author)}</div>`}</td>
        <td class="acts">${versions[i + 1] && html`<button type="button" class="b" aria-label=${`${w("history.changes")} v${version.version}`} title=${w("history.changed", { version: version.version, before: versions[i + 1].version })} onClick=${() => show(version, versions[i + 1])}>${w("history.changes")}</button>`}
          ${i === 0 ? html`<span class="label">${w("history.inForce")}</span>` : html`<button type="button" class="b" aria-label=${`${w("history.difference")} v${version.version}`} onClick=${() => show(version)}>${w("history.difference")}</button>
          ${!view && !same.has(version.version) && html`<button type="button" class="b" disabled=${!write} aria-label=${`${w("history.back")} v${version.version}`} onClick=${() => setBack(version.version)}>${w("history.back")}</button>`}`}</td></tr>`)}</tbody>
    </table>`}
    ${error && html`<p class="pad denied" role="alert">${mistakeWords(error)}</p>`}
    ${back !== null && html`<${RollBack} version=${back} etag=${etag} close=${() => setBack(null)} done=${rolled} />`}
  </${Card}>`;
}

/** The versions whose text the newest one has restored: to roll back to them would change nothing. */
function sameAsNewest(versions) {
  const found = new Set();
  for (let at = versions[0]; at?.restores && !found.has(at.restores); at = versions.find((each) => each.version === at.restores)) found.add(at.restores);
  return found;
}

/** Between two entries that the same publication wrote, in seconds. */
const SAME_S = 5;
/** The server writes the text that it finds in the file into the history when the next one is published: it was in force before. */
const isFoundLater = ({ version, time, author }, versions) => author?.by === "file" && versions.some((next) => next.version === version + 1 && next.time - time < SAME_S);

/** Goes back to a version, after its difference to what is in force was seen. */
export function RollBack({ version, etag, close, done }) {
  const { data: old } = usePoll(`/v1/rules/history/${version}`, Infinity);
  const { data: current, etag: currentEtag } = usePoll("/v1/rules", Infinity);
  const [note, setNote] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const go = async () => {
    if (busy || typeof old !== "string") return;
    setBusy(true);
    try {
      const { body } = await call("/v1/rules/rollback", { json: { version }, headers: { "If-Match": currentEtag ?? etag, ...noteHeader(note) }, patience: 15_000 });
      say(w("history.rolledBack", { version, next: body.version }));
      close();
      done();
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
      setBusy(false);
    }
  };
  return html`<${Dialog} wide title=${w("history.back.title", { version })} close=${close} submit=${go}
    footer=${html`<button type="button" class="b" onClick=${close}>${w("cancel")}</button><button class="b danger" disabled=${!old || busy}>${w("history.back.do", { version })}</button>`}>
    <label class="field"><span>${w("publish.note")}</span><input class="in w100 sans" data-first maxlength=${MAX_NOTE} value=${note} onInput=${(event) => setNote(event.target.value)} /></label>
    ${typeof old === "string" && typeof current === "string" && html`<div class="dialog-scroll"><${Difference} title=${w("history.back.change")} before=${current} after=${old} /></div>`}
    <p class="label">${w("history.back.more")}</p>
    <${Mistake} error=${error} />
  </${Dialog}>`;
}

/** Whether a version was published within the last hour: the way back is then in the bar. */
export const isRecent = (time) => serverNow() - time < 3600;
