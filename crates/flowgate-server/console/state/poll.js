// Sources that are asked again and again: one call per source under way, none while the tab is hidden or the server away.

import { useEffect, useMemo } from "../vendor/hooks.js";
import { call } from "./api.js";
import { cell, useCell } from "./cell.js";
import { away, heard, noteAnswer, noteFailure } from "./link.js";
import { logOuts, session } from "./session.js";

/** Answers of sources that no page watches are kept, so that a page comes up with data; the oldest go first. */
const MAX_KEPT = 40;
/** A file that is being written is read again after so many seconds. */
const CHANGING_S = 0.5;
const sources = new Map();

/** A source: its last answer, its last mistake, and who watches it. */
class Source {
  constructor(request) {
    this.request = request;
    this.state = cell({ data: null, error: null });
    this.intervals = new Map();
    this.timer = null;
    this.underWay = false;
    this.isOld = false;
  }

  watch(owner, seconds) {
    this.intervals.set(owner, seconds);
    this.soon();
    return () => {
      this.intervals.delete(owner);
      if (!this.intervals.size) clearTimeout(this.timer);
    };
  }

  /** Asks as soon as it may. */
  soon() {
    clearTimeout(this.timer);
    if (!this.underWay && mayAsk() && this.intervals.size) this.ask();
  }

  /** Asks for what is there from now on. An answer that is under way may be older. */
  anew() {
    this.isOld = this.underWay;
    this.soon();
  }

  async ask() {
    this.underWay = true;
    const login = session.get();
    let wait = null;
    try {
      const { body, etag, changing } = await call(this.request.path, this.request.options);
      heard(body?.now);
      noteAnswer();
      // The answer to a login that has ended since belongs to nobody.
      if (session.get() === login) this.state.set(changing ? { ...this.state.get(), changing } : { data: body, etag, error: null });
      if (changing) wait = CHANGING_S;
    } catch (error) {
      if (!noteFailure(error)) {
        noteAnswer();
        wait = error.retryAfter;
        this.state.set({ ...this.state.get(), error });
      }
    }
    this.underWay = false;
    const isOld = this.isOld;
    this.isOld = false;
    if (isOld && wait === null) return this.soon();
    const seconds = wait ?? Math.min(...this.intervals.values());
    if (this.intervals.size && Number.isFinite(seconds)) this.timer = setTimeout(() => this.soon(), seconds * 1000);
  }
}

const mayAsk = () => !document.hidden && !away.get() && session.get() !== null;

function wakeAll() {
  if (mayAsk()) for (const source of sources.values()) source.soon();
}
document.addEventListener("visibilitychange", wakeAll);
away.watch(wakeAll);
session.watch(wakeAll);
// Another login may open other things. Sources that every page watches stay, without their data.
logOuts.watch(() => {
  for (const [key, source] of sources) {
    if (source.intervals.size) source.state.set({ data: null, error: null });
    else sources.delete(key);
  }
});

export function sourceOf(path, options) {
  const key = JSON.stringify([path, options ?? null]);
  const found = sources.get(key);
  sources.delete(key);
  const source = found ?? new Source({ path, options });
  sources.set(key, source);
  for (const [old, each] of sources) {
    if (sources.size <= MAX_KEPT) break;
    if (!each.intervals.size) sources.delete(old);
  }
  return source;
}

/**
 * The last answer of a source, asked every `seconds` while the component is there (Infinity: once).
 * A null path asks nothing.
 * `changing`: the file is being written, and `data` is what it was before.
 * `know` puts there what a write has made of it, until it is read again.
 * @returns {{ data: any, error: Error | null, etag?: string, changing?: boolean, again: () => void, know: (data: any, etag: string) => void }}
 */
export function usePoll(path, seconds, options) {
  const key = path && JSON.stringify([path, options ?? null]);
  const source = useMemo(() => (path ? sourceOf(path, options) : NOTHING), [key]);
  useEffect(() => (path ? source.watch({}, seconds) : undefined), [source, seconds]);
  return { ...useCell(source.state), again: () => source.anew(), know: (data, etag) => source.state.set({ data, etag, error: null }) };
}

const NOTHING = { state: cell({ data: null, error: null }), anew() {} };
