// Limits of the limit language, taken apart so that they can be said in words.

/** `{ kind, count, seconds, burst, after, zone }` of a limit such as `bucket 30/60s burst=15`; null: not understood. */
export function parseLimit(text) {
  const words = text.trim().split(/\s+/);
  const kind = /^[a-z]+$/.test(words[0]) ? words.shift() : "sliding";
  const rate = /^([\d.]+)\/(\d+)?([a-z]+)$/.exec(words.shift() ?? "");
  if (!rate) return null;
  const unit = UNITS.get(rate[3]);
  if (!unit) return null;
  const options = new Map(words.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]));
  return {
    kind,
    count: Number(rate[1]),
    seconds: (rate[2] === undefined ? 1 : Number(rate[2])) * unit,
    burst: options.get("burst") ?? null,
    after: options.get("after") ?? null,
    zone: options.get("tz") ?? null,
  };
}

const UNITS = new Map([
  ["ms", 0.001], ["s", 1], ["sec", 1], ["second", 1], ["m", 60], ["min", 60], ["minute", 60],
  ["h", 3600], ["hour", 3600], ["d", 86_400], ["day", 86_400], ["w", 604_800], ["week", 604_800], ["month", 2_592_000], ["year", 31_536_000],
]);
