// The fields of a request, from what somebody typed or pasted.

/**
 * `act=reply user=42`, `act="two words"`, or JSON such as `{"act":"reply"}` or `{"fields":{..}}`.
 * @returns {[string, string][] | null} pairs in order; null: it is neither
 */
export function parseFields(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) return fromJson(trimmed);
  const found = [];
  const pair = /\s*([^\s=]+)=(?:"((?:\\.|[^"\\])*)"|(\S*))/gy;
  let end = 0;
  for (let match = pair.exec(trimmed); match; match = pair.exec(trimmed)) {
    found.push([match[1], match[2] === undefined ? match[3] : match[2].replace(/\\(.)/g, "$1")]);
    end = pair.lastIndex;
  }
  return found.length && end === trimmed.length ? found : null;
}

function fromJson(text) {
  try {
    const value = JSON.parse(text);
    const fields = value.fields && typeof value.fields === "object" ? value.fields : value;
    return Object.entries(fields).map(([name, each]) => [name, typeof each === "string" ? each : JSON.stringify(each)]);
  } catch {
    return null;
  }
}

/** The pairs as one line that `parseFields` reads. */
export function printFields(pairs) {
  return pairs.map(([name, value]) => `${name}=${/[\s"\\]/.test(value) || value === "" ? `"${value.replace(/["\\]/g, "\\$&")}"` : value}`).join(" ");
}

/** A value that meets one of the items of a condition as /v1/policy says them; null: none can be told, as of `*`, `/api/**` or `@office`. */
export function valueThatMeets(is) {
  for (const item of is) {
    const literal = /^\{ eq = (".*") \}$/.exec(item);
    if (literal) return unquoted(literal[1]);
    if (isText(item)) return item;
  }
  return null;
}

/** Neither a negation, list, expression, comparison, shape, range nor network. */
const isText = (item) => item !== "" && !/^[!@~<>{]|\*|\.\.|^[\da-f.:]+\/\d+$/i.test(item);

function unquoted(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The server keeps neither headers nor queries of a request that it denied. */
export const isUnkept = (field) => /^(header|query)\./.test(field);

/**
 * The fields of a request of a subject that a rule counts.
 * @param denials events of /v1/denials: the newest of this subject is such a request, but for the fields that are not kept
 * @returns pairs; a field that the rule wants and whose value is not known has the value ""
 */
export function requestOf(subject, conditions, denials) {
  const isSame = (event) => !event.cut && subject.every(([name, value]) => (event.subject[name] ?? event.fields[name]) === value);
  const event = denials.filter(isSame).reduce((newest, each) => (newest && newest.seq > each.seq ? newest : each), null);
  const known = event ? { ...event.fields, ...event.subject } : Object.fromEntries(subject);
  const wanted = conditions.filter(({ field, is }) => (!event || isUnkept(field)) && !(field in known) && !is.every((item) => item.startsWith("!")));
  return [...wanted.map(({ field, is }) => [field, valueThatMeets(is) ?? ""]), ...Object.entries(known)];
}

/** The most fields that a page begins with. */
const MAX_STARTING = 6;

/** The names of the fields to fill in: those that most rules count by, then those that most rules look at. */
export function startingFields(rules) {
  const byUse = (names) => {
    const uses = new Map();
    for (const name of names) uses.set(name, (uses.get(name) ?? 0) + 1);
    return [...uses].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  };
  const names = [...byUse(rules.flatMap((rule) => rule.by ?? [])), ...byUse(rules.flatMap((rule) => rule.when.map((each) => each.field)))];
  return names.length ? [...new Set(names)].slice(0, MAX_STARTING) : ["user"];
}
