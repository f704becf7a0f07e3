// Limits of the limit language, taken apart so that they can be said in words.

/** `{ kind, count, seconds, burst, after, zone }` of a limit such as `bucket 30/60s burst=15`, `after` as `{ count, seconds }`; null: not understood. */
export function parseLimit(text) {
  const words = text.trim().split(/\s+/);
  const kind = /^[a-z]+$/.test(words[0]) ? words.shift() : "sliding";
  const rate = parseRate(words.shift() ?? "");
  if (!rate) return null;
  const options = new Map(words.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]));
  const after = options.has("after") ? parseRate(options.get("after")) : null;
  if (options.has("after") && !after) return null;
  return {
    kind,
    ...rate,
    burst: options.get("burst") ?? null,
    after,
    zone: options.get("tz") ?? null,
  };
}

/** `{ count, seconds }` of `30/60s`; null: not understood. */
function parseRate(text) {
  const rate = /^([\d.]+)\/(\d+)?([a-z]+)$/.exec(text);
  const unit = rate && UNITS.get(rate[3]);
  return unit ? { count: Number(rate[1]), seconds: (rate[2] === undefined ? 1 : Number(rate[2])) * unit } : null;
}

/**
 * The limits in a text of rules with the rule and the longest period of each: `{ rule, limit, seconds }`.
 * @param blocks of `ruleBlocks`
 */
export function periods(text, blocks) {
  const all = text.split("\n");
  return blocks.flatMap(({ name, from, to }) => {
    const quoted = all.slice(from, to).filter((line) => !/^\s*#/.test(line)).join("\n").matchAll(/"([^"\n]*)"|'([^'\n]*)'/g);
    return [...quoted].flatMap(([, double, single]) => {
      const limit = parseLimit(double ?? single);
      return limit ? [{ rule: name, limit: double ?? single, seconds: Math.max(limit.seconds, limit.after?.seconds ?? 0) }] : [];
    });
  });
}

/** A sample begins with empty counters: it tells of a limit if it lasts two periods at least, and well if three. */
const [LEAST_PERIODS, GOOD_PERIODS] = [2, 3];

/**
 * How long to record for limits of these periods, with lengths to choose from, in seconds and rising.
 * @returns {{ judged: object | null, length: number | null, beyond: object | null }} the limit with the longest period that a
 *   sample can judge, the length for it, and the limit with the longest period of those that no sample can judge
 */
export function sampleFor(limits, lengths) {
  const most = lengths[lengths.length - 1];
  const longest = (list) => list.reduce((max, each) => (!max || each.seconds > max.seconds ? each : max), null);
  const judged = longest(limits.filter((each) => LEAST_PERIODS * each.seconds <= most));
  const length = judged && (lengths.find((each) => each >= GOOD_PERIODS * judged.seconds) ?? most);
  return { judged, length, beyond: longest(limits.filter((each) => LEAST_PERIODS * each.seconds > most)) };
}

const UNITS = new Map([
  ["ms", 0.001], ["s", 1], ["sec", 1], ["second", 1], ["m", 60], ["min", 60], ["minute", 60],
  ["h", 3600], ["hour", 3600], ["d", 86_400], ["day", 86_400], ["w", 604_800], ["week", 604_800], ["month", 2_592_000], ["year", 31_536_000],
]);
