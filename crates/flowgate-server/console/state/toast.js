// The one sentence at the bottom right, with at most one way back; and the sentence for screen readers.

import { cell } from "./cell.js";
import { route } from "./route.js";

const SHOWN_MS = 8000;
/** At most one sentence is spoken in this time. */
const QUIET_MS = 10_000;

/** `{ text, action: { label, run } }`, or null. */
export const toast = cell(null);
/** What the live region says. */
export const spoken = cell("");
let timer = null;
let spokenAt = -Infinity;
let shownOn = route.get().page;

export function say(text, action = null) {
  clearTimeout(timer);
  toast.set({ text, action });
  timer = setTimeout(() => toast.set(null), SHOWN_MS);
}

export const dismiss = () => toast.set(null);
// What a toast offers belongs to the page that said it.
route.watch((next) => {
  if (next.page !== shownOn) dismiss();
  shownOn = next.page;
});

/** Speaks a change that is seen elsewhere on the page. */
export function speak(text) {
  if (performance.now() - spokenAt < QUIET_MS) return;
  spokenAt = performance.now();
  spoken.set(text);
}
