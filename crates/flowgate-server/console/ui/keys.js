// Keys: `/` searches, `g` and a letter goes to a page, `?` lists them. Single letters can be switched off.

import { cell, useCell } from "../state/cell.js";
import { letters } from "../state/prefs.js";
import { go } from "../state/route.js";
import { hasPage } from "../state/stats.js";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { w } from "./words.js";

const GOES = new Map([["o", ""], ["l", "live"], ["r", "rules"], ["s", "subject"], ["b", "bans"], ["e", "edit"], ["t", "try"], ["d", "store"], ["k", "koala"]]);
/** How long `g` waits for its letter. */
const PATIENCE_MS = 1500;

export const keysShown = cell(false);
export const showKeys = () => keysShown.set(true);
let goAt = -Infinity;

const isTyping = (target) => target.closest?.("input, textarea, select, [role=dialog]");

export function listenToKeys() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || keysShown.get()) return;
    if (event.key === "?") return act(event, showKeys);
    if (letters.get() === "off") return undefined;
    if (event.timeStamp - goAt < PATIENCE_MS && hasPage(GOES.get(event.key))) {
      goAt = -Infinity;
      return act(event, () => go(GOES.get(event.key)));
    }
    if (event.key === "g") goAt = event.timeStamp;
    if (event.key === "/") {
      const search = document.querySelector("main [data-search]");
      if (search) return act(event, () => search.focus());
    }
    return undefined;
  });
}

function act(event, run) {
  event.preventDefault();
  run();
}

export function Keys() {
  const shown = useCell(keysShown);
  const on = useCell(letters) === "on";
  if (!shown) return null;
  const close = () => keysShown.set(false);
  const rows = [
    ["?", w("keys.list")], ["/", w("keys.search")],
    ...[...GOES].filter(([, page]) => hasPage(page)).map(([letter, page]) => [`g ${letter}`, w(`page.${page || "overview"}`)]),
    ["← →", w("keys.chart")], ["p", w("keys.pause")], ["F8", w("keys.finding")], ["Ctrl Enter", w("keys.publish")], ["Esc Tab", w("keys.leave")],
  ];
  return html`<${Dialog} title=${w("keys")} close=${close} submit=${close} footer=${html`<button class="b" data-first>${w("close")}</button>`}>
    <table class="keys"><tbody>${rows.map(([keys, words]) => html`<tr><td>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</td><td>${words}</td></tr>`)}</tbody></table>
    <label class="check"><input type="checkbox" checked=${on} onChange=${() => letters.set(on ? "off" : "on")} />${w("keys.letters")}</label>
  </${Dialog}>`;
}
