// The rules in force: /v1/policy, read anew only when /v1/stats tells of another.

import { call } from "./api.js";
import { cell, useCell } from "./cell.js";
import { noteFailure } from "./link.js";
import { logOuts, session } from "./session.js";
import { stats } from "./stats.js";
import { useEffect } from "../vendor/hooks.js";

/** The last answer; null before the first. */
export const policy = cell(null);
let asked = null;
let isUsed = false;

/** The rules of one answer. */
const PAGE = 1000;

/** All pages of the rules. */
async function readAll() {
  const { body } = await call("/v1/policy");
  while (body.rules.length < body.total) {
    const { body: more } = await call(`/v1/policy?from=${body.rules.length}&limit=${PAGE}`);
    // The rules have changed in between: /v1/stats tells, and all is read anew.
    if (more.etag !== body.etag || !more.rules.length) break;
    body.rules.push(...more.rules);
  }
  return body;
}

async function read(etag) {
  if (!session.get()) return;
  asked = etag;
  try {
    const found = await readAll();
    // The answer to an older question may come last.
    if (asked === etag) policy.set(found);
  } catch (error) {
    noteFailure(error);
    if (asked === etag) asked = null;
  }
}

stats.watch((now) => {
  const wanted = now && JSON.stringify([now.policy_etag, now.broken?.since ?? null, now.started]);
  // Also after a reading that had no answer.
  if (wanted && isUsed && wanted !== asked) read(wanted);
});
logOuts.watch(() => {
  policy.set(null);
  asked = null;
});

/** The rules in force; read at the first use, and again when a page that shows their counts comes up. */
export function usePolicy(fresh = false) {
  const found = useCell(policy);
  const now = useCell(stats);
  useEffect(() => {
    isUsed = true;
    if (now && (!policy.get() || fresh)) read(JSON.stringify([now.policy_etag, now.broken?.since ?? null, now.started]));
  }, [now === null]);
  return found;
}
