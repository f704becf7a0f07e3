// Is what counts healthy? This node only.

import { latest } from "../lib/history.js";
import { clean } from "../lib/text.js";
import { useCell } from "../state/cell.js";
import { usePoll } from "../state/poll.js";
import { stats } from "../state/stats.js";
import { Card, Lead, Sign, Strip, Text, Time } from "../ui/basics.js";
import { Page } from "../ui/frame.js";
import { html } from "../ui/html.js";
import { RestartNotice } from "../ui/publish.js";
import { Share } from "../ui/small_drawings.js";
import { f, gap, w, wx } from "../ui/words.js";

export function Store() {
  const now = useCell(stats);
  const { data: history } = usePoll("/v1/stats/history?range=1h&rules=top", 5);
  return html`<${Page} title=${w("page.store")}><${RestartNotice} />${now && html`<${Body} now=${now} history=${history} />`}</${Page}>`;
}

function Body({ now, history }) {
  const store = now.store ?? { type: "memory" };
  const redis = store.type === "redis";
  const down = now.state === "degraded";
  return html`
    <${Lead} sign=${down ? "away" : "allowed"} tone=${down ? "" : "allowed"} more=${w("store.node")}>
      ${down ? w("store.away", { at: now.since ? f().clock(now.since, true) : "–" }) : w(redis ? "store.redis" : "store.memory")}</${Lead}>
    <${Memory} memory=${now.memory} />
    ${redis && html`<${Servers} store=${store} history=${history} />`}
    <div class="cols c-50 even">
      <${Connections} now=${now} />
      <${Node} now=${now} />
    </div>
    ${now.settings && html`<${Settings} settings=${now.settings} />`}`;
}

function Memory({ memory }) {
  const [used, unit] = f().bytes(memory.bytes);
  return html`<${Strip} cells=${[
    { label: w("overview.counters"), value: f().num(memory.keys), note: w("store.keys") },
    { label: w("store.memoryUsed"), value: used, unit: ` ${unit}`, note: w("store.of", { most: f().bytes(memory.max_bytes).join(" "), share: f().percent(memory.bytes, memory.max_bytes) }) },
    { label: w("store.evicted"), value: f().num(memory.evicted), note: w("store.inUse", { n: f().num(memory.evicted_in_use ?? 0) }) },
    { label: w("store.refused"), value: f().num(memory.refused), tone: memory.refused ? "denied" : "", note: w("store.bansRefused", { n: f().num(memory.bans_refused ?? 0) }) },
    ...(memory.coarsened === undefined ? [] : [{ label: w("store.coarsened"), value: f().num(memory.coarsened), note: w("store.coarsened.note") }]),
  ]} />`;
}

function Servers({ store, history }) {
  const p50 = latest(history?.latency?.store?.p50);
  const p99 = latest(history?.latency?.store?.p99);
  const time = (micros) => (micros === null ? "–" : `${f().milliseconds(micros)} ms`);
  return html`<${Card} title=${w("store.servers")} head=${html`<code class="muted">on_failure = "${store.on_failure}"${store.local_share ? `, local_share = "${store.local_share}"` : ""}</code>`}
      foot=${w("store.more", { unanswered: f().num(store.unanswered ?? 0), outages: f().num(store.outages ?? 0), degraded: f().num(store.degraded ?? 0), hits: f().num(store.deny_cache_hits ?? 0) })}>
    <table class="t fold"><thead><tr><th class="keep">${w("store.server")}</th><th class="keep">${w("store.state")}</th><th class="r">${w("store.connectionsHead")}</th><th class="r">p50</th><th class="r">p99</th><th></th></tr></thead>
    <tbody>${store.servers.map((server) => {
      const up = server.state === "ready";
      return html`<tr key=${server.at}><td><code><${Text} of=${server.at} most=${64} /></code></td><td><${Sign} kind=${up ? "allowed" : "away"} tone=${up ? "allowed" : ""} /> ${w(up ? "state.ready" : "state.away")}</td>
        <td class="r l2" data-l=${w("store.connectionsHead")}>${f().num(server.connections ?? 0)}</td><td class="r opt">${up ? time(p50) : "–"}</td><td class="num l2" data-l="p99">${up ? time(p99) : "–"}</td><td class="cut opt"></td></tr>`;
    })}</tbody></table>
  </${Card}>`;
}

function Connections({ now }) {
  const { max, refused, unauthorized, ...listeners } = now.connections ?? {};
  const foot = html`${max ? w("store.cap", { n: f().num(max) }) : ""}${gap()}${refused === undefined ? "" : w("store.refusedMore", { refused: f().num(refused), unauthorized: f().num(unauthorized ?? 0) })}`;
  return html`<${Card} title=${w("store.connections")} foot=${foot}><table class="t">
    <thead><tr><th>${w("overview.listener")}</th><th class="r">${w("store.open")}</th><th></th></tr></thead>
    <tbody>${Object.entries(listeners).map(([listener, open]) => html`<tr key=${listener}><td>${listener}</td><td class="num">${f().num(open)}</td><td class="cut">${max > 0 && html`<${Share} of=${open / max} tone="quiet" />`}</td></tr>`)}</tbody></table></${Card}>`;
}

function Node({ now }) {
  const rows = [
    [w("store.node.name"), now.node ?? "–"], [w("history.version"), now.version], [w("store.started"), html`<${Time} at=${now.started} />`], [w("store.uptime"), f().span(Math.floor(now.uptime))], [w("store.rules"), f().num(now.rules)],
    ...(now.reloads ? [[w("store.reloads"), w("store.reloads.n", { ok: f().num(now.reloads.succeeded), failed: f().num(now.reloads.failed) })]] : []),
  ];
  return html`<${Card} title=${w("store.node.title")} foot=${wx("store.grafana", { file: html`<code>packaging/grafana</code>` })}><table class="t"><tbody>${rows.map(([name, value]) => html`<tr><td class="dim">${name}</td><td class="r">${value}</td></tr>`)}</tbody></table></${Card}>`;
}

/** A secret without a value has nothing to hide. */
const isUnsetSecret = (name, value) => /(token|password)$/.test(name) && /^(""|)$/.test(value);

function Settings({ settings }) {
  const rows = Object.entries(settings);
  return html`<${Card} title=${w("store.settings")} foot=${w("store.secrets")}><table class="t settings"><tbody>${rows.map(([name, value]) => html`<tr key=${name}><td><code>${clean(name)}</code></td><td>${isUnsetSecret(name, value) ? html`<span class="muted">${w("store.unset")}</span>` : html`<code><${Text} of=${typeof value === "string" ? value : JSON.stringify(value)} /></code>`}</td></tr>`)}</tbody></table></${Card}>`;
}
