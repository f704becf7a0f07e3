// Numbers and times as they are read in one language. Times are seconds since 1970.

const DAY = 86_400;
/** The units of lengths of time. */
const UNITS = new Map([
  ["en", { day: "d", hour: "h", minute: "min", second: "s" }],
  ["zh-CN", { day: "天", hour: "小时", minute: "分钟", second: "秒" }],
]);

/** What turns figures into words of `language`; `zone` is for tests, the browser's own otherwise. */
export function formats(language, zone) {
  const integer = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
  const tenths = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const hundredths = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const timeFormat = (options) => new Intl.DateTimeFormat(language, { hourCycle: "h23", timeZone: zone, ...options });
  const minute = timeFormat({ hour: "2-digit", minute: "2-digit" });
  const second = timeFormat({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const day = timeFormat({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

  const percentSign = language === "zh-CN" ? "%" : " %";

  const num = (value) => integer.format(value);

  /** A rate without its unit: one decimal below 100, whole from there. */
  function rate(value) {
    if (value === 0) return "0";
    if (value < 0.05) return `< ${tenths.format(0.1)}`;
    return value < 99.95 ? tenths.format(value) : integer.format(value);
  }

  /** A share of a whole in percent; small ones are told from none. */
  function percent(part, whole) {
    if (!whole) return "–";
    const share = (100 * part) / whole;
    if (part > 0 && share < 0.05) return `< ${tenths.format(0.1)}${percentSign}`;
    return `${tenths.format(share)}${percentSign}`;
  }

  /** Microseconds as milliseconds. */
  function milliseconds(micros) {
    const value = micros / 1000;
    if (value > 0 && value < 0.005) return `< ${hundredths.format(0.01)}`;
    return value < 10 ? hundredths.format(value) : value < 100 ? tenths.format(value) : integer.format(value);
  }

  /** Bytes as a number and its unit, decimal. */
  function bytes(value) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0;
    while (value >= 999.5 && unit < units.length - 1) {
      value /= 1000;
      unit += 1;
    }
    const number = unit === 0 || value >= 99.5 || Number.isInteger(value) ? integer.format(value) : tenths.format(value);
    return [number, units[unit]];
  }

  /** The time of day; seconds on demand. */
  const clock = (at, seconds = false) => (seconds ? second : minute).format(at * 1000);

  /** The time of day of today, seconds on demand; with the date of another day. */
  function moment(at, now, seconds = false) {
    return Math.abs(now - at) < DAY / 2 || sameDay(at, now) ? clock(at, seconds) : day.format(at * 1000);
  }

  const dayKey = timeFormat({ day: "numeric", month: "numeric", year: "numeric" });
  const sameDay = (a, b) => dayKey.format(a * 1000) === dayKey.format(b * 1000);

  /** The time in UTC, for titles. */
  const utc = (at) => `${new Date(at * 1000).toISOString().replace("T", " ").slice(0, 19)} UTC`;

  const unit = UNITS.get(language) ?? UNITS.get("en");
  const tenthsUp = (seconds) => `${(Math.ceil(seconds * 10) / 10).toFixed(1)} ${unit.second}`;

  /** A wait that runs down: `12.2 s`, `9 min 10 s`, `2 h 5 min`. With units, as 09:10 reads as a time of day. Rounded up, so it never reads 0 too early. */
  function countdown(seconds) {
    if (seconds <= 0) return `0 ${unit.second}`;
    return seconds < 60 ? tenthsUp(seconds) : span(seconds);
  }

  /** A length in one or two units: `41 s`, `9 min 12 s`, `2 h`, `3 d`. */
  function span(seconds) {
    if (seconds < 10 && !Number.isInteger(seconds)) return tenthsUp(seconds);
    const whole = Math.ceil(seconds);
    const units = [[DAY, unit.day], [3600, unit.hour], [60, unit.minute], [1, unit.second]];
    const first = units.findIndex(([size]) => whole >= size);
    if (first < 0) return `0 ${unit.second}`;
    const [size, name] = units[first];
    const text = `${Math.floor(whole / size)} ${name}`;
    const next = units[first + 1];
    const rest = next ? Math.floor((whole % size) / next[0]) : 0;
    return rest ? `${text} ${rest} ${next[1]}` : text;
  }

  return { num, rate, percent, milliseconds, bytes, clock, moment, utc, countdown, span, tenths: (value) => tenths.format(value), language };
}
