// Change the file safely: check, difference, try, publish.

import { counts, rows } from "../lib/diff.js";
import { ruleBlocks } from "../lib/toml.js";
import { call } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { caretLine, draft, writeDraft } from "../state/draft.js";
import { noteFailure } from "../state/link.js";
import { usePoll } from "../state/poll.js";
import { address, go } from "../state/route.js";
import { stats } from "../state/stats.js";
import { say } from "../state/toast.js";
import { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { Card, Command, Lead, Notice, Sign, useRights } from "../ui/basics.js";
import { CodeArea } from "../ui/code_area.js";
import { Conflict } from "../ui/conflict.js";
import { Changes, Difference } from "../ui/difference.js";
import { Findings, nextFinding, useCheck, warningsOf } from "../ui/findings.js";
import { Page } from "../ui/frame.js";
import { html } from "../ui/html.js";
import { PublishDialog, RestartNotice } from "../ui/publish.js";
import { isRecent, RollBack, Versions } from "../ui/versions.js";
import { w, wx } from "../ui/words.js";
import { Painted } from "./start.js";

export function Editor() {
  const { data: text, etag, error, changing, again, know } = usePoll("/v1/rules", Infinity);
  const fileEtag = useCell(stats)?.file_etag;
  const seen = useRef(fileEtag);
  useEffect(() => {
    // The file has changed, by whomever: read it anew. A draft stays as it is.
    if (seen.current !== fileEtag) again();
    seen.current = fileEtag;
  }, [fileEtag]);
  if (error?.status === 409 || error?.status === 404) return html`<${NoFile} />`;
  if (typeof text !== "string") return html`<${Page} title=${w("page.edit")}>${changing && html`<p class="muted" role="status">${w("editor.changing")}</p>`}</${Page}>`;
  return html`<${Loaded} file=${{ text, etag }} again=${again} know=${know} />`;
}

function NoFile() {
  const example = `[[rule]]\nname   = "reply"\nwhen   = { act = "reply", user = "*" }\nby     = ["user"]\nlimits = ["5/60s"]\n`;
  return html`<${Page} title=${w("page.edit")}><${Lead} more=${wx("editor.noFile.more", { file: html`<code>flowgate.toml</code>` })}>${w("editor.noFile")}</${Lead}>
    <${Command} text=${example} block><${Painted} text=${example} /></${Command}><${Command} text="flowgate serve --config flowgate.toml" /></${Page}>`;
}

function Loaded({ file, again, know }) {
  const own = useCell(draft);
  const { write, view } = useRights();
  const text = own?.text ?? file.text;
  const base = own?.base ?? file.text;
  const moved = own !== null && own.etag !== file.etag;
  const [dialog, setDialog] = useState(null);
  const [resolving, setResolving] = useState(false);
  const [compared, setCompared] = useState(null);
  const area = useRef(null);
  const [findings, difference] = [useRef(null), useRef(null)];
  const check = useCheck(text, !view);
  const changes = useMemo(() => counts(rows(base, text)), [base, text]);
  const errors = check.findings.filter((each) => each.severity === "error");
  const placed = check.findings.filter((each) => !each.source || isOwn(each.source));
  const { data: versions, again: askVersions } = usePoll("/v1/rules/history", 10);
  const history = versions?.versions ?? [];
  const version = history.reduce((most, each) => Math.max(most, each.version), 0) || null;
  const changed = changes.added + changes.removed > 0;
  const mayPublish = write && changed && check.valid === true && !moved;

  useEffect(() => {
    const line = caretLine.at;
    caretLine.at = null;
    if (line !== null) area.current?.goTo(line + 1, 0);
  }, []);
  const type = (next) => {
    if (!own) draft.set({ text: next, base: file.text, etag: file.etag });
    else writeDraft(next);
  };
  const discard = () => {
    const before = own;
    draft.set(null);
    setResolving(false);
    say(w("editor.discarded"), { label: w("undo"), run: () => draft.set(before) });
  };
  const publish = () => (moved ? setResolving(true) : mayPublish && setDialog("publish"));
  const published = (answer, sent, sentEtag, oldVersion) => {
    // What was typed while the publication was under way is a draft of what is published.
    const now = draft.get();
    know(sent, sentEtag);
    draft.set(now && now.text !== sent ? { ...now, base: sent, etag: sentEtag } : null);
    setDialog(null);
    setCompared(null);
    again();
    askVersions();
    // The first publication also keeps the text before it, as the version before its own.
    const back = oldVersion ?? answer.version - 1;
    const waits = answer.restart_needed?.length > 0;
    say(w(waits ? "editor.published.waits" : "editor.published", { version: answer.version, n: answer.rules }), back > 0 ? { label: w("history.back"), run: () => setDialog({ back }) } : null);
  };
  const rolledBack = () => {
    setCompared(null);
    again();
    askVersions();
  };
  const conflicted = () => {
    setDialog(null);
    again();
    setResolving(true);
  };
  const merged = (next) => {
    const before = own;
    draft.set(next === file.text ? null : { text: next, base: file.text, etag: file.etag });
    setResolving(false);
    say(w("conflict.merged"), { label: w("undo"), run: () => draft.set(before) });
  };
  const recent = [...history].sort((a, b) => b.version - a.version);
  const right = html`${recent.length > 1 && isRecent(recent[0].time) && !view && html`<button type="button" class="b bare hide" disabled=${!write} onClick=${() => setDialog({ back: recent[1].version })}>${w("editor.rollBack", { version: recent[1].version })}</button>`}
    ${own && html`<button type="button" class="b bare" onClick=${discard}>${w("editor.discard")}</button>`}`;
  return html`<${Page} title=${w("page.edit")} right=${right}>
    <${RestartNotice} />
    ${moved && !resolving && html`<${Notice} title=${w("editor.moved")} action=${html`<button type="button" class="b" onClick=${() => setResolving(true)}>${w("editor.resolve")}</button>`}>${w("editor.moved.more")}</${Notice}>`}
    ${moved && resolving ? html`<${Conflict} key=${file.etag} base=${own.base} yours=${own.text} theirs=${file.text} done=${merged} />` : html`
      <${Steps} errors=${errors.length} warnings=${warningsOf(check)} tried=${own?.tried === true} changes=${changes} changed=${changed} checking=${check.checking} blocked=${reason({ view, write, changed, moved, check, errors })} publish=${publish} view=${view} show=${{ findings, difference }} />
      <div class="cols c-ed">
        <div class="stack">
          <section class="card"><header><h2><code class="strong">${fileName()}</code></h2><span class="label">${own ? (version ? w("editor.draft", { version }) : w("editor.draft.new")) : version ? w("editor.inForce", { version }) : ""}</span><span class="grow"></span><span class="label wide">${w("editor.rules", { n: ruleBlocks(text).length })}</span></header>
            <div class="hr"></div>
            <${CodeArea} text=${text} onText=${type} findings=${placed} api=${area} onPublish=${publish} label=${w("editor.text")} readOnly=${view}
              onNext=${(line, backwards) => nextFinding(placed, line, backwards, area.current.goTo)} />
          </section>
          <div tabindex="-1" role="region" aria-label=${w("findings")} ref=${findings}><${Findings} check=${check} isOwn=${isOwn} goTo=${(finding) => area.current.goTo(finding.line, finding.column ?? 1)} draft=${own !== null} view=${view} /></div>
        </div>
        <div class="stack">
          <div tabindex="-1" role="region" aria-label=${w("step.difference")} ref=${difference}>${compared && html`<${Difference} title=${compared.title} before=${compared.before} after=${compared.after ?? text} head=${html`<button type="button" class="b bare" onClick=${() => setCompared(null)}>${w("close")}</button>`} />`}
          ${!compared && html`<${Difference} title=${version ? w("editor.difference", { version }) : w("editor.difference.file")} before=${base} after=${text} />`}</div>
          <${Versions} etag=${file.etag} compare=${(title, before, after) => setCompared({ title, before, after })} changed=${rolledBack} />
        </div>
      </div>`}
    ${dialog === "publish" && html`<${PublishDialog} text=${text} base=${base} etag=${own?.etag ?? file.etag} restart=${check.restart} close=${() => setDialog(null)} done=${(answer, sentEtag) => published(answer, text, sentEtag, version)} conflicted=${conflicted} />`}
    ${dialog?.back && html`<${RollBack} version=${dialog.back} etag=${file.etag} close=${() => setDialog(null)} done=${rolledBack} />`}
  </${Page}>`;
}

const fileName = () => (stats.get()?.file ?? "flowgate.toml").split("/").pop();
/** Findings of included files have no place in this text. */
const isOwn = (source) => source.split("/").pop() === fileName();

/** Why publish waits; null: it does not. */
function reason({ view, write, changed, moved, check, errors }) {
  if (view) return w("publish.view");
  if (!write) return w("publish.away");
  if (moved) return null;
  if (!changed) return w("publish.unchanged");
  if (errors.length) return errors[0].line ? w("publish.mistake", { line: errors[0].line }) : w("publish.wrong");
  if (check.valid !== true) return w("publish.checking");
  return null;
}

function Steps({ errors, warnings, tried, changes, changed, blocked, publish, view, show }) {
  // The focus scrolls there, if it is not in view.
  const to = (place, words) => html`<button type="button" class="link" onClick=${() => place.current.focus()}><b>${words}</b></button>`;
  return html`<div class="tools">
    <ol class="steps">
      <li><span class="n">1</span>${to(show.findings, w("step.check"))}<span class="cnt">${errors > 0 && html`<span class="denied"><${Sign} kind="denied" /> ${errors}</span> `}${warnings > 0 && html`<span><${Sign} kind="away" /> ${warnings}</span>`}${changed && !errors && !warnings && html`<${Sign} kind="ok" />`}</span></li>
      <li><span class="n">2</span>${to(show.difference, w("step.difference"))}${changed && html`<${Changes} ...${changes} />`}</li>
      <li><span class="n">3</span><a href=${address("try")}>${w("step.try")}</a>${tried && html`<span class="cnt"><${Sign} kind="ok" /></span>`}</li>
      <li><span class="n">4</span>${w("step.publish")}</li>
    </ol>
    <span class="grow"></span>
    ${blocked && html`<span class="label" role="status">${blocked}</span>`}
    ${!view && html`<button type="button" class=${blocked ? "b" : "b solid"} disabled=${blocked !== null} onClick=${publish}>${w("publish")}</button>`}
  </div>`;
}

/** From other pages: the editor with a text to be checked. */
export function openDraft(text, base, etag) {
  draft.set({ text, base, etag });
  go("edit");
}
