// What the server refuses in the order of a ban, so that the form tells it before the click.

import { network } from "./network.js";

/** True if the server would refuse the value for the field `ip`. It also takes patterns such as `1.2.3.*` and `1.2.3.4-9`, which it checks itself. */
export const isNoAddress = (value) => value.trim() !== "" && !/[*-]/.test(value) && network(value) === null;

/** The longest ban, in seconds. */
const MAX_S = 366 * 86_400;
const SECONDS = new Map([["us", 1e-6], ["ms", 1e-3], ["s", 1], ["sec", 1], ["second", 1], ["m", 60], ["min", 60], ["minute", 60], ["h", 3600], ["hr", 3600], ["hour", 3600], ["d", 86_400], ["day", 86_400], ["w", 604_800], ["week", 604_800]]);

/** True if the server reads a text as the length of a ban: `90m`, `7d`, at most 366 days. */
export function isLength(text) {
  const found = /^(\d*)([a-z]+)$/.exec(text);
  const seconds = found && Number(found[1] || 1) * (SECONDS.get(found[2]) ?? Number.NaN);
  return seconds > 0 && seconds <= MAX_S;
}
