// The draft of the rules: what somebody has typed and not published. It outlasts a reload and a login, and goes at log-out.

import { cell } from "./cell.js";
import { logOuts } from "./session.js";

const STORED = "flowgate.draft";

/** `{ text, base, etag, tried }`: the text, the text it was made from, that one's ETag, and whether the text was tried on a sample. Null: none. */
export const draft = cell(load());

function load() {
  try {
    const stored = JSON.parse(sessionStorage.getItem(STORED));
    return stored && typeof stored.text === "string" ? stored : null;
  } catch {
    return null;
  }
}

draft.watch((value) => {
  if (!value) return sessionStorage.removeItem(STORED);
  try {
    sessionStorage.setItem(STORED, JSON.stringify(value));
  } catch {
    // Larger than the browser keeps: the draft lives as long as the tab.
  }
});

logOuts.watch(() => draft.set(null));

/** Other tabs answer at once; one that the browser has put to sleep does not answer, and has no draft to ask about. */
const ANSWER_MS = 200;
const channel = new BroadcastChannel("flowgate.drafts");
let counting = null;
channel.addEventListener("message", ({ data }) => {
  if (data === "ask" && draft.get()) channel.postMessage("draft");
  else if (data === "draft") counting?.();
});

/** The number of other tabs that have a draft. A log-out ends all of them. */
export function draftsElsewhere() {
  let count = 0;
  counting = () => (count += 1);
  channel.postMessage("ask");
  return new Promise((done) => setTimeout(() => {
    counting = null;
    done(count);
  }, ANSWER_MS));
}

/** Puts a changed text in place of the draft's. */
export const writeDraft = (text) => draft.set({ ...draft.get(), text, tried: false });

/** A text was tried on a sample. */
export const noteTried = (text) => draft.get()?.text === text && draft.set({ ...draft.get(), tried: true });

/** Where the editor puts the caret when it opens next: a line from 0. */
export const caretLine = { at: null };
