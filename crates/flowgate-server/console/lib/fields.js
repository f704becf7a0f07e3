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
