// What is in Koala's rule file, what did each rule do today?

import { clean, cleanLines } from "../lib/text.js";
import { call } from "../state/api.js";
import { noteFailure } from "../state/link.js";
import { usePoll } from "../state/poll.js";
import { useState } from "../vendor/hooks.js";
import { Card, Command, Mistake, Notice, Text, useRights } from "../ui/basics.js";
import { html } from "../ui/html.js";
import { Page } from "../ui/frame.js";
import { actionWords } from "../ui/rule_words.js";
import { f, w } from "../ui/words.js";
import { Painted } from "./start.js";

export function Koala() {
  const { data, error } = usePoll("/v1/koala", 5);
  return html`<${Page} title=${w("page.koala")}>
    <${Mistake} error=${error} />
    ${data?.broken && html`<${Notice} kind="wrong" title=${w("koala.broken")}><pre class="report" lang="en">${cleanLines(data.broken.report)}</pre></${Notice}>`}
    ${data && html`<${Rules} rules=${data.rules ?? []} />`}
    <div class="cols c-50">
      ${data?.toml && html`<${Card} title=${w("koala.toml")}><div class="pad toml"><${Command} text=${data.toml} block><${Painted} text=${data.toml} /></${Command}></div></${Card}>`}
      <${CheckText} />
    </div>
  </${Page}>`;
}

function Rules({ rules }) {
  return html`<div class="card"><table class="t fold"><thead><tr><th class="keep">${w("koala.number")}</th><th class="r">${w("koala.line")}</th><th>${w("koala.method")}</th><th>${w("koala.conditions")}</th><th class="r">${w("koala.time")}</th><th class="r">${w("koala.count")}</th><th>${w("koala.result")}</th><th class="r">${w("koala.passed")}</th><th class="r keep">${w("koala.refused")}</th></tr></thead>
    <tbody>${rules.map((rule) => html`<tr key=${rule.number ?? rule.id}><td class="strong">${rule.number ?? rule.id}</td><td class="r dim opt">${rule.line ?? ""}</td><td class="opt">${clean(rule.method ?? "")}</td><td class="cut l2"><code><${Text} of=${rule.conditions ?? rule.text ?? ""} /></code></td><td class="r opt">${rule.time === undefined || rule.time === null ? "–" : w("length.s", { n: f().num(rule.time) })}</td><td class="r opt">${rule.count === undefined || rule.count === null ? "–" : f().num(rule.count)}</td><td class="opt">${clean(actionWords(rule.result ?? ""))}</td><td class="r opt">${zero(rule.passed)}</td><td class="num">${zero(rule.refused)}</td></tr>`)}</tbody></table></div>`;
}

const zero = (count) => html`<span class=${count ? "" : "zero"}>${f().num(count ?? 0)}</span>`;

function CheckText() {
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  const { view } = useRights();
  if (view) return null;
  const check = async (event) => {
    event.preventDefault();
    try {
      setAnswer((await call("/v1/koala/validate", { method: "POST", json: { text } })).body);
      setError(null);
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
  };
  return html`<${Card} title=${w("koala.check")}><form class="pad koala-check" onSubmit=${check}><textarea class="in w100" rows="8" placeholder="rule : [count] [act=ask; ip=+] [time=60; count=10] [result=2; return=201]" aria-label=${w("koala.check")} spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
    <button class="b" disabled=${!text.trim()}>${w("koala.check.do")}</button><${Mistake} error=${error} />
    ${answer && html`<div role="status">${answer.valid ? w("koala.right") : html`<pre class="report" lang="en">${cleanLines(answer.report ?? JSON.stringify(answer.findings ?? answer))}</pre>`}</div>`}</form></${Card}>`;
}
