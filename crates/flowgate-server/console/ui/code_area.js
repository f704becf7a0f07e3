// A text with colours and marks: a <textarea> over a painted layer. Undo, input methods, screen readers and phones are the
// browser's own; only the lines in view are painted.

import { lines as splitLines } from "../lib/diff.js";
import { cleanCode } from "../lib/text.js";
import { markAt, painted } from "../lib/toml.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { Hints } from "./answers.js";
import { Sign } from "./basics.js";
import { html } from "./html.js";
import { w } from "./words.js";

/** As in css/drawings.css. */
const LINE_PX = 21;
const PAD_PX = 8;
/** Lines painted beyond the edge, so that a small scroll shows no empty line. */
const BEYOND = 8;
const CLASSES = new Map([["head", "h"], ["key", "k"], ["comment", "c"], ["text", "v"]]);

/**
 * @param props text, onText, findings: `[{ severity, line, column, hint }]` of this text, api: `{ current }`, which gets
 *   `goTo(line, column)`; onPublish: Ctrl-Enter; label; readOnly
 */
export function CodeArea({ text, onText, findings, api, onPublish, onNext, label, readOnly }) {
  const area = useRef(null);
  const [view, setView] = useState({ top: 0, left: 0, width: 0, height: 600, caret: 0 });
  const [leaving, setLeaving] = useState(false);
  const all = useMemo(() => text.split("\n"), [text]);
  const byLine = useMemo(() => group(findings), [findings]);

  const look = () => {
    if (!area.current) return;
    const { scrollTop: top, scrollLeft: left, clientWidth: width, clientHeight: height, selectionStart, value } = area.current;
    const caret = countLines(value, selectionStart);
    const next = { top, left, width, height, caret };
    setView((old) => (Object.keys(next).every((name) => old[name] === next[name]) ? old : next));
  };
  useLayoutEffect(look, [text]);
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(area.current);
    document.addEventListener("selectionchange", look);
    return () => {
      observer.disconnect();
      document.removeEventListener("selectionchange", look);
    };
  }, []);
  api.current = {
    goTo(line, column = 1) {
      const before = all.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
      const [from, to] = column ? markAt(all[line - 1] ?? "", column) : [0, 0];
      area.current.focus();
      area.current.setSelectionRange(before + from, before + (column ? to : from));
      area.current.scrollTop = Math.max(0, (line - 1) * LINE_PX - area.current.clientHeight / 3);
      look();
    },
  };

  const keys = (event) => {
    if (event.key === "F8") {
      event.preventDefault();
      return onNext(view.caret + 1, event.shiftKey);
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return onPublish();
    }
    if (event.key === "Escape") return setLeaving(true);
    if (event.key === "Tab" && !event.shiftKey && !leaving && !readOnly) {
      event.preventDefault();
      // The browser's own way to type, which keeps its undo.
      document.execCommand("insertText", false, "  ");
    }
    return leaving && setLeaving(false);
  };

  const first = Math.max(0, Math.floor((view.top - PAD_PX) / LINE_PX) - BEYOND);
  const last = Math.min(all.length, Math.ceil((view.top + view.height) / LINE_PX) + BEYOND);
  const shown = all.slice(first, last);
  // Places are set through the object model, which the policy allows.
  const gutter = { transform: `translateY(${first * LINE_PX - view.top}px)` };
  // As wide as what is seen, so that a hint ends at the edge.
  const layer = { transform: `translate(${-view.left}px, ${first * LINE_PX - view.top}px)`, width: `${view.left + view.width}px` };
  return html`<div class="code-area">
    <div class="gutter" aria-hidden="true"><div style=${gutter}>${shown.map((_, i) => html`<${Number} key=${first + i} n=${first + i + 1} found=${byLine.get(first + i + 1)} current=${view.caret === first + i} />`)}</div></div>
    <div class="paint">
      <div class="layer" aria-hidden="true" style=${layer}>${shown.map((line, i) => html`<${Line} key=${first + i} line=${line} found=${byLine.get(first + i + 1)} current=${view.caret === first + i} />`)}</div>
      <textarea ref=${area} aria-label=${label} spellcheck=${false} autocapitalize="off" autocomplete="off" wrap="off" readOnly=${readOnly} value=${text}
        onInput=${(event) => onText(event.target.value)} onScroll=${look} onKeyDown=${keys}></textarea>
    </div>
  </div>`;
}

function countLines(text, end) {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0 && at < end; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

function group(findings) {
  const found = new Map();
  for (const finding of findings) if (finding.line) found.set(finding.line, [...(found.get(finding.line) ?? []), finding]);
  return found;
}

function Number({ n, found, current }) {
  const worst = found && (found.some((each) => each.severity === "error") ? "error" : "warning");
  return html`<div class=${`ln ${worst === "error" ? "bad" : worst ? "strong" : ""} ${current ? "cur" : ""}`}>${worst && html`<${Sign} kind=${worst === "error" ? "denied" : "away"} />`}${n}</div>`;
}

function Line({ line, found = [], current }) {
  const marks = found.map((each) => {
    const [from, to] = markAt(line, each.column ?? 1);
    return { from, to, severity: each.severity };
  });
  const said = found[0];
  return html`<div class=${`tx ${current ? "cur" : ""}`}><span class="own">${painted(line, marks).map((piece) => (piece.mark ? html`<mark class=${piece.mark === "error" ? "" : "w"}>${cleanCode(piece.text)}</mark>` : html`<span class=${CLASSES.get(piece.kind)}>${cleanCode(piece.text)}</span>`))}</span>
    ${said?.hint && html`<span class=${`say ${said.severity === "error" ? "" : "w"}`}><${Hints} of=${said} /></span>`}</div>`;
}

/** How many lines a text has, in words. */
export const lineCount = (text) => w("editor.lines", { n: splitLines(text).length });
