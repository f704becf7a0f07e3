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

const UNITS = new Map([
  ["ms", 0.001], ["s", 1], ["sec", 1], ["second", 1], ["m", 60], ["min", 60], ["minute", 60],
  ["h", 3600], ["hour", 3600], ["d", 86_400], ["day", 86_400], ["w", 604_800], ["week", 604_800], ["month", 2_592_000], ["year", 31_536_000],
]);
