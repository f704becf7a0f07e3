// The login: a key that the server gives for a token. The token itself is forgotten at once.
//
// The key lives in sessionStorage, which a tab keeps over a reload. Other tabs of the same origin ask for it over a
// BroadcastChannel, so that a second tab needs no second login.

import { cell } from "./cell.js";

const STORED = "flowgate.session";
const channel = new BroadcastChannel("flowgate.session");

/** `{ key, until, view }`; null: nobody is logged in. `view`: this key opens what is read, and no write. */
export const session = cell(load());

/** Counts log-outs. What a session has gathered goes then; it stays when a key merely ends. */
export const logOuts = cell(0);

/** Why the login is shown, if it lies over a page: `ended`, or null. */
export const loginReason = cell(null);

function load() {
  try {
    const stored = JSON.parse(sessionStorage.getItem(STORED));
    return stored && typeof stored.key === "string" ? stored : null;
  } catch {
    return null;
  }
}

session.watch((value) => {
  if (value) sessionStorage.setItem(STORED, JSON.stringify(value));
  else sessionStorage.removeItem(STORED);
});

channel.addEventListener("message", ({ data }) => {
  if (data?.ask && session.get()) channel.postMessage({ session: session.get() });
  else if (data?.session && !session.get()) begin(data.session, false);
  else if (data?.end) forget();
});

/** Asks other tabs for their key. Answers come as a change of `session`. */
export function askOtherTabs() {
  if (!session.get()) channel.postMessage({ ask: true });
}

/** A login has succeeded, here or in another tab. */
export function begin(next, tell = true) {
  loginReason.set(null);
  session.set(next);
  if (tell) channel.postMessage({ session: next });
}

/** The server has refused the key: the login lies over the page until there is another. */
export function expire() {
  if (session.get()) loginReason.set("ended");
  session.set(null);
}

/** Log out, in all tabs. Drafts go, too. */
export function end() {
  forget();
  channel.postMessage({ end: true });
}

function forget() {
  loginReason.set(null);
  session.set(null);
  logOuts.set(logOuts.get() + 1);
}

/**
 * The token of the address `#login=TOKEN`, taken out of the address before anything else happens.
 * A fragment reaches no server and no log.
 */
export function takeTokenFromAddress() {
  const found = /^#login=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", "#/");
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return found[1];
  }
}
