// Is the server there? What the pages know of it, and the server's time.
//
// A call without an answer makes the server `away`. Then only /v1/stats is asked, after 1, 2, 4, 8 and then every 15 s,
// until it answers; all other sources wait for that.

import { Unanswered } from "./api.js";
import { cell } from "./cell.js";

const WAITS_S = [1, 2, 4, 8, 15];

/** Null while the server answers, else `{ since, next, attempt }`: server times of the last answer and the next attempt. */
export const away = cell(null);
/** The server's time of its last answer, and the browser's at that moment. */
let known = { now: Date.now() / 1000, at: performance.now() };
let timer = null;
let probe = null;

/** The server's time, as its last answer told it and the browser's clock has gone on since. */
export const serverNow = () => known.now + (performance.now() - known.at) / 1000;

/** An answer has brought the server's time. */
export function heard(now) {
  if (typeof now === "number") known = { now, at: performance.now() };
}

/** The function that asks whether the server is back; it rejects with `Unanswered` while it is not. */
export function setProbe(ask) {
  probe = ask;
}

/** A call has failed. True if that means that the server is away. */
export function noteFailure(error) {
  if (!(error instanceof Unanswered)) return false;
  if (!away.get()) {
    away.set({ since: serverNow(), attempt: 0, next: serverNow() + WAITS_S[0] });
    schedule();
  }
  return true;
}

/** A call was answered, whatever the answer says. */
export function noteAnswer() {
  if (!away.get()) return;
  clearTimeout(timer);
  away.set(null);
}

/** Asks now instead of at the next attempt. */
export function tryNow() {
  clearTimeout(timer);
  attempt();
}

function schedule() {
  const state = away.get();
  timer = setTimeout(attempt, Math.max(0, (state.next - serverNow()) * 1000));
}

async function attempt() {
  try {
    await probe();
    noteAnswer();
  } catch (error) {
    const state = away.get();
    if (!state) return;
    if (!(error instanceof Unanswered)) return noteAnswer();
    const count = Math.min(state.attempt + 1, WAITS_S.length - 1);
    away.set({ ...state, attempt: count, next: serverNow() + WAITS_S[count] });
    schedule();
  }
}
