// Bans by hand that are so wide that everybody who looks should know: more than an IPv4 /8 or an IPv6 /16.

import { needsWide, network } from "../lib/network.js";
import { cell } from "./cell.js";
import { sourceOf } from "./poll.js";
import { stats } from "./stats.js";

const EVERY_S = 5;
/** Only networks are wide. */
const source = sourceOf("/v1/bans/find", { json: { text: "/", origin: "hand", after: null, limit: 1000 } });

/** The wide bans, `{ id, value, since, until, version, prefix }`, the widest first. */
export const wideBans = cell([]);

function wideOf(ban) {
  const found = ban.field === "ip" ? network(ban.value) : null;
  return found && needsWide(found) ? [{ ...ban, version: found.version, prefix: found.prefix }] : [];
}

/** Asks while there are bans by hand, and at once when their number changes. */
export function watchWideBans() {
  let [stop, number] = [null, 0];
  source.state.watch(({ data }) => {
    const next = (data?.bans ?? []).flatMap(wideOf).sort((a, b) => a.prefix - b.prefix);
    if (next.length || wideBans.get().length) wideBans.set(next);
  });
  stats.watch((now) => {
    const byHand = now?.bans?.hand ?? 0;
    if (byHand === number) return;
    number = byHand;
    stop?.();
    stop = null;
    if (byHand) stop = source.watch("always", EVERY_S);
    else wideBans.set([]);
  });
}
