// What every page knows of the server: /v1/stats, once a second.

import { call } from "./api.js";
import { cell } from "./cell.js";
import { heard, setProbe } from "./link.js";
import { sourceOf } from "./poll.js";
import { session } from "./session.js";

const EVERY_S = 1;
const source = sourceOf("/v1/stats");

/** The last answer; null before the first. */
export const stats = cell(null);
/** The time at which the server was found to have started anew while this page was open; null: it was not. */
export const restarted = cell(null);

/** True if the console has such a page; Koala's is there where its rules are served. */
export const hasPage = (name) => name !== undefined && (name !== "koala" || Boolean(stats.get()?.fronts?.includes("koala")));

/** Begins to ask. */
export function watchStats() {
  source.state.watch(({ data }) => data && take(data));
  source.watch("always", EVERY_S);
  session.watch((value) => {
    if (!value) stats.set(null);
    else source.soon();
  });
  setProbe(async () => {
    const { body } = await call("/v1/stats");
    heard(body.now);
    take(body);
  });
}

function take(data) {
  const before = stats.get();
  if (before && data.started - before.started > 0.5) restarted.set(data.started);
  stats.set(data);
}
