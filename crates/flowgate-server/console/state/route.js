// The address: `#/rules/reply?range=1h`, all in the fragment, which reaches no server and no log.

import { cell } from "./cell.js";

/** `{ page, name, query }` of a fragment. */
export function parseRoute(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/");
  return { page, name: rest.length ? decode(rest.join("/")) : null, query: new URLSearchParams(search) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The fragment of a page. */
export function address(page, name = null, query = {}) {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined)).toString();
  return `#/${page}${name === null ? "" : `/${encodeURIComponent(name)}`}${search ? `?${search}` : ""}`;
}

/** How the page that is shown was come to: `traverse` is a step back or forward, where the browser keeps the place on the page. */
export const arrival = { kind: null };
globalThis.navigation?.addEventListener("navigate", (event) => (arrival.kind = event.navigationType));

export const route = cell(parseRoute(location.hash));
addEventListener("hashchange", readAddress);

/** Takes the address anew: the browser does not tell of a change by `replaceState`. */
export function readAddress() {
  route.set(parseRoute(location.hash));
}

/** Goes to a page. */
export function go(page, name, query) {
  location.hash = address(page, name, query);
}

/** Changes the address of the page that is shown, without a step in the history. */
export function replaceQuery(changes) {
  const { page, name, query } = route.get();
  const next = { ...Object.fromEntries(query), ...changes };
  history.replaceState(history.state, "", address(page, name, next));
  readAddress();
}

/** Values for the page that is gone to next. They are not in the address: "copy link with values" puts them there. */
export const handover = { fields: null };
