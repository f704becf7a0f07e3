// The one sentence of the overview: which rule denies whom, how much, since when.

/** A rule is named if it denies this often a second, */
const LEAST_RATE = 1;
/** and more than this share of what it saw. */
const LEAST_SHARE = 0.1;

/** Names in brackets are no rules: `(ban)` counts denials by bans by hand, `(key)` those of limits that callers bring. */
export const [BY_HAND, OF_KEYS] = ["(ban)", "(key)"];
export const isRule = (name) => !name.startsWith("(");

/** Rules of Koala's file are `koala:111` in counts and `koala-111` elsewhere; they have no page of their own. */
export const isOfKoala = (name) => /^koala[:-]\d+$/.test(name ?? "");
export const subjectsName = (name) => (isOfKoala(name) ? name.replace(":", "-") : name);

/**
 * @param {{ rule: string, allowed: number, denied: number }[]} rules rates of the last minute
 * @returns the rule that denies most by the rule above, or null
 */
export function denier(rules) {
  const loud = rules.filter((rule) => rule.rule !== BY_HAND && rule.denied >= LEAST_RATE && rule.denied > LEAST_SHARE * (rule.allowed + rule.denied));
  return loud.reduce((most, rule) => (!most || rule.denied > most.denied ? rule : most), null);
}

/**
 * Bans by hand that deny more than the loudest rule in the newest seconds: what the rule denied before is past.
 * @param rules rates of the last minute, with those of the newest seconds as `newest`
 */
export function bansInForce(rules) {
  const byHand = rules.find((rule) => rule.rule === BY_HAND);
  if (!byHand || byHand.newest.denied < LEAST_RATE) return null;
  return rules.some((rule) => rule !== byHand && rule.newest.denied >= byHand.newest.denied) ? null : byHand;
}

/** Denials are noticeable from this share of all requests on, however few they are. */
export const isNoticeable = (rates) => rates.denied > LEAST_SHARE * (rates.allowed + rates.denied + rates.own);

/** What denies, most first: rules whose action is a denial, bans by hand, limits that callers bring. */
export const deniers = (rules) => rules.filter((rule) => rule.denied > 0 && !isOwnAction(rule.action)).sort((a, b) => b.denied - a.denied);

/** An action that is neither `deny` nor `allow` is a word of the rule's own, such as `captcha`. */
export const isOwnAction = (action) => Boolean(action) && action !== "deny" && action !== "allow";

/** A subject with this share of what its rule denied lately is named alone. */
const CULPRIT_SHARE = 0.5;
export const isCulprit = (count, all) => all > 0 && count >= CULPRIT_SHARE * all;

/** `ip=203.0.113.77` of a subject `{ ip: "203.0.113.77" }`, as pairs in order. */
export const pairs = (subject) => (subject && typeof subject === "object" ? Object.entries(subject) : []);

/** The least `first` of subjects; null: there are none. */
export function since(subjects) {
  return subjects.reduce((least, each) => (least === null || each.first < least ? each.first : least), null);
}
