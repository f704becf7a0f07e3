// Counts over time, as /v1/stats/history answers them, gathered into the bars of a chart.

/**
 * The bars of `count` steps that are `null` where nothing was measured. Bars begin at multiples of their width, so that
 * a bar keeps its steps from one answer to the next. `most` bounds their number.
 * @returns {{ width: number, starts: number[], values: Map<string, (number|null)[]> }} values are per second
 */
export function bars(history, series, most) {
  const steps = history.length;
  const perBar = Math.max(1, Math.ceil(steps / most));
  const width = perBar * history.step;
  const begin = history.end - steps * history.step;
  const first = Math.ceil(begin / width) * width;
  const count = Math.max(0, Math.ceil((history.end - first) / width));
  const starts = Array.from({ length: count }, (_, i) => first + i * width);
  const values = new Map();
  for (const [name, list] of series) {
    values.set(name, starts.map((start) => mean(list, (start - begin) / history.step, perBar, history.step)));
  }
  return { width, starts, values };
}

/** The mean per second of the steps from `from` on; null where none of them was measured. */
function mean(list, from, count, step) {
  let [sum, seconds] = [0, 0];
  for (let i = Math.max(0, Math.round(from)); i < Math.min(list.length, Math.round(from) + count); i += 1) {
    if (list[i] === null || list[i] === undefined) continue;
    sum += list[i];
    seconds += step;
  }
  return seconds ? sum / seconds : null;
}

/** The sum of a list of counts and nulls, of its last `steps` elements on demand. */
export function total(list, steps = Infinity) {
  let sum = 0;
  for (let i = Math.max(0, list.length - steps); i < list.length; i += 1) sum += list[i] ?? 0;
  return sum;
}

/**
 * The rate per second of the last `seconds`, without the step that is not over. Null where nothing was measured.
 * `measured`: the list that tells which steps were measured. A rule has no value before it first decides, yet the rates of
 * rules and of all are of the same time.
 */
export function recentRate(list, step, seconds, measured = list) {
  const steps = Math.max(1, Math.round(seconds / step));
  const end = Math.max(1, list.length - 1);
  let [sum, time] = [0, 0];
  for (let i = Math.max(0, end - steps); i < end; i += 1) {
    if (measured[i] === null || measured[i] === undefined) continue;
    sum += list[i] ?? 0;
    time += step;
  }
  return time ? sum / time : null;
}

/** The first list less the second, step by step; gaps stay gaps. */
export const less = (list, part) => list.map((value, i) => (value === null ? null : value - (part[i] ?? 0)));

/** The last value that was measured; null: none. */
export function latest(list = []) {
  for (let i = list.length - 1; i >= 0; i -= 1) if (list[i] !== null && list[i] !== undefined) return list[i];
  return null;
}

/** A whole tick of an axis: the largest of 1, 2, 5 times a power of ten that leaves two to four of them below `most`. */
export function tick(most) {
  if (most <= 0) return 1;
  for (let power = -1; ; power += 1) {
    for (const step of [1, 2, 5]) {
      const size = step * 10 ** power;
      if (most / size <= 2.6) return size;
    }
  }
}

/** The step of the labels of a time axis of `seconds`, so that at most `most` are there. */
export function timeTick(seconds, most) {
  const sizes = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, 86_400];
  return sizes.find((size) => seconds / size <= most) ?? 86_400;
}
