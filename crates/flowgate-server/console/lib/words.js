// One sentence of a table of words, with its gaps filled in.
//
//   {name}               the value itself
//   {name|one|other}     `one` if the value is the number 1, else `other`

const GAP = /\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g;

/** The parts of a sentence, texts and values in order. Values may be anything, elements of a page too. */
export function parts(sentence, values = {}) {
  const out = [];
  let from = 0;
  for (const gap of sentence.matchAll(GAP)) {
    if (gap.index > from) out.push(sentence.slice(from, gap.index));
    const value = values[gap[1]];
    out.push(gap[2] === undefined ? value : value === 1 || value === "1" ? gap[2] : gap[3]);
    from = gap.index + gap[0].length;
  }
  if (from < sentence.length) out.push(sentence.slice(from));
  return out;
}

/** The sentence as one text. */
export const fill = (sentence, values) => parts(sentence, values).join("");

/** The names of the gaps of a sentence, each once. */
export const gaps = (sentence) => [...new Set(Array.from(sentence.matchAll(GAP), (gap) => gap[1]))].sort();
