// Texts of the internet, made safe to look at. They reach the page as text nodes only.

/** The most characters of a foreign text that a table shows; the whole is in its title. */
export const MAX_SHOWN = 128;

// Control characters, and those that turn the direction of what follows or are invisible.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The text with every character that could mislead the reader shown as U+FFFD. */
export function clean(text) {
  return String(text ?? "").replace(HIDDEN, "\ufffd");
}

/** The same for a report of several lines, which stay lines. */
export const cleanLines = (text) => String(text ?? "").split("\n").map(clean).join("\n");

/** The same for the text of a file: its lines and tabs stay. */
export const cleanCode = (text) => String(text ?? "").split(/([\n\t])/).map((part, i) => (i % 2 ? part : clean(part))).join("");

/** The same for a report of several lines, as one line. */
export const cleanLine = (text) => clean(String(text ?? "").trim().replace(/([.,:;])?\s*\r?\n\s*/g, (_, end) => `${end ?? ";"} `));

/** The first `most` characters of the text; `…` stands for the rest. */
export function cut(text, most = MAX_SHOWN) {
  if (text.length <= most) return text;
  const points = Array.from(text);
  return points.length <= most ? text : points.slice(0, most - 1).join("") + "…";
}

/** The index in UTF-16 units of a column, which counts characters from 1. */
export function unitOfColumn(line, column) {
  let unit = 0;
  for (let left = column - 1; left > 0 && unit < line.length; left -= 1) unit += line.codePointAt(unit) > 0xffff ? 2 : 1;
  return unit;
}
