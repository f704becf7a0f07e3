// The check of a draft, 300 ms after the last key, and what it found.

import { clean } from "../lib/text.js";
import { call } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { away, noteAnswer, noteFailure } from "../state/link.js";
import { session } from "../state/session.js";
import { useEffect, useState } from "../vendor/hooks.js";
import { Answer, Hints } from "./answers.js";
import { Card, mistakeWords, Sign } from "./basics.js";
import { html } from "./html.js";
import { gap, w, wx } from "./words.js";

const SETTLE_MS = 300;
const NOTHING = { valid: null, findings: [], restart: [], checking: false, error: null };

/**
 * The findings of a text. A check of an older text is dropped; one that had no answer is made again when the server is back,
 * or after the next login. */
export function useCheck(text, active) {
  const [check, setCheck] = useState(NOTHING);
  const gone = useCell(away) !== null;
  const loggedIn = useCell(session) !== null;
  useEffect(() => {
    if (!active) return setCheck(NOTHING);
    if (gone || !loggedIn) return undefined;
    setCheck((old) => ({ ...old, valid: null, checking: true }));
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { body } = await call("/v1/rules/validate", { toml: text, signal: stop.signal });
        noteAnswer();
        setCheck({ valid: body.valid, findings: body.findings, restart: body.restart_needed ?? [], checking: false, error: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        noteFailure(error);
        setCheck({ ...NOTHING, error });
      }
    }, SETTLE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, active, gone, loggedIn]);
  return check;
}

/** Warnings, and one more if settings wait for a restart. */
export const warningsOf = (check) => check.findings.filter((each) => each.severity !== "error").length + (check.restart.length > 0 ? 1 : 0);

/** `server.threads waits for a restart of the server.` */
export const restartWords = (names) => wx("publish.waits", { names: names.map((name, i) => html`${i ? w("listAnd") : ""}<code lang="en">${name}</code>`), n: names.length });

/** Goes to the next finding after a line, around the end; mistakes and warnings alike. */
export function nextFinding(findings, line, backwards, goTo) {
  const placed = findings.filter((each) => each.line).sort((a, b) => a.line - b.line);
  if (!placed.length) return;
  const next = backwards ? placed.findLast((each) => each.line < line) ?? placed[placed.length - 1] : placed.find((each) => each.line > line) ?? placed[0];
  goTo(next.line, next.column ?? 1);
}

/** @param props isOwn(source): the finding is in this text, so it has a place to go to */
export function Findings({ check, goTo, draft, isOwn, view }) {
  const errors = check.findings.filter((each) => each.severity === "error").length;
  const warnings = warningsOf(check);
  const head = errors + warnings > 0 && html`<span class="label">${w("findings.count", { errors, warnings })}${check.findings.length > 0 && html` · <kbd>F8</kbd> ${w("findings.next")}`}</span>`;
  // Mistakes come first; warnings are apart from them.
  const sorted = [...check.findings].sort((a, b) => (a.severity === b.severity ? (a.line ?? 0) - (b.line ?? 0) : a.severity === "error" ? -1 : 1));
  return html`<${Card} title=${w("findings")} head=${head}>
    <div aria-live="polite">${check.error && html`<p class="pad denied">${mistakeWords(check.error)}</p>`}
    ${check.restart.length > 0 && html`<div class="finding"><${Sign} kind="away" /><div>${restartWords(check.restart)}${gap()}${w("findings.waits.more")}</div></div>`}
    ${!check.error && errors + warnings === 0 && html`<p class="pad muted">${w(view ? "findings.view" : check.checking || (!draft && check.valid === null) ? "findings.checking" : draft ? "findings.none" : "findings.file")}</p>`}
    ${sorted.map((finding) => html`<div class=${`finding ${finding.severity === "error" ? "err" : ""}`}><${Sign} kind=${finding.severity === "error" ? "denied" : "away"} />
      <div><span class="unseen">${w(`severity.${finding.severity}`)}${w("colon")}</span><${Answer} text=${finding.message} code=${finding.code} values=${finding.values} />${finding.hint && html`<div class="hint"><${Hints} of=${finding} /></div>`}</div>
      <span class="at">${finding.line && (!finding.source || isOwn(finding.source)
        ? html`<button type="button" class="link" onClick=${() => goTo(finding)}>${finding.line}:${finding.column ?? 1}</button>`
        : html`<code>${clean(finding.source).split("/").pop()}:${finding.line}</code>`)}</span></div>`)}</div>
  </${Card}>`;
}
