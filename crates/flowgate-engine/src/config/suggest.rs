//! "Did you mean": the known word that is nearest to a mistyped one.

use super::message::{Message, coded};
use super::render::shortened;

/// A hint with the nearest of the known words, if one is near.
pub fn did_you_mean<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<Message> {
    nearest(written, known).map(meant)
}

/// A hint with what was probably meant.
pub(crate) fn meant(word: impl std::fmt::Display) -> Message {
    coded!("meant", "did you mean \"{word}\"?", word = shortened(&word.to_string()))
}

/// The known word that takes the fewest edits to reach, or the only one that has the written word as a part: `memory`
/// for `max_memory`. `None` if all are too different.
pub fn nearest<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if written.chars().nth(MAX_WORD_CHARS).is_some() {
        return None;
    }
    let written = comparable(written);
    let mut best = None;
    let mut longer_words = Vec::new();
    for word in known {
        let other = comparable(word);
        if written.len() >= MIN_PART_BYTES && other.split('_').any(|part| part == written) {
            longer_words.push(word);
        }
        let edits = strsim::osa_distance(&written, &other);
        // People rarely mistype the first letter.
        let rank = (edits, written.chars().next() != other.chars().next());
        let lengths = [word.len(), written.chars().count()];
        let (shorter, longer) = (lengths[0].min(lengths[1]), lengths[0].max(lengths[1]));
        // `byy` for `by`, `mn` for `min`.
        let is_short_slip = (shorter, longer, edits) == (2, 3, 1) && !rank.1;
        let is_near = is_short_slip || edits <= max_edits(shorter);
        if is_near && best.is_none_or(|(best, _)| rank < best) {
            best = Some((rank, word));
        }
    }
    match (best, &*longer_words) {
        (Some((_, word)), _) => Some(word),
        (None, [word]) => Some(word),
        (None, _) => None,
    }
}

/// Without the case, and without the difference between `-` and `_`.
fn comparable(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

/// All known words are shorter than this, so a longer text is not a mistyped word.
const MAX_WORD_CHARS: usize = 40;

/// A shorter part, such as `max`, says too little about the word that is meant.
const MIN_PART_BYTES: usize = 4;

/// A third of a word may be wrong; a suggestion beyond that misleads.
fn max_edits(length: usize) -> usize {
    (length / 3).min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_shows_the_beginning_of_a_long_word() {
        assert!(meant("/a".repeat(1000)).text.len() < 80);
    }

    #[test]
    fn slips_of_the_pen_get_a_suggestion() {
        let known = ["burst", "rate", "max_wait", "tz", "after", "algorithm"];
        let check = |written, expected| assert_eq!(nearest(written, known), expected, "{written}");
        check("burts", Some("burst"));
        check("brust", Some("burst"));
        check("Burst", Some("burst"));
        check("max-wait", Some("max_wait"));
        check("maxwait", Some("max_wait"));
        check("algoritm", Some("algorithm"));
        check("TZ", Some("tz"));
        check("t", None);
        check("color", None);
        check("", None);
        check(&"burst".repeat(1000), None);
        // In a word of two letters, one wrong letter is too much for a suggestion. One letter too many or too few is
        // still a slip.
        assert_eq!(nearest("byy", ["name", "by", "ban"]), Some("by"));
        assert_eq!(nearest("mn", ["ms", "min", "month"]), Some("min"));
        assert_eq!(nearest("my", ["ms", "by"]), None);
        // A part of exactly one known word suggests that word. A part of two known words suggests none.
        assert_eq!(nearest("memory", ["type", "max_memory"]), Some("max_memory"));
        assert_eq!(nearest("max", ["type", "max_memory"]), None);
        assert_eq!(nearest("memory", ["max_memory", "memory_cap"]), None);
        assert_eq!(nearest("xratelimit", ["ratelimit", "x-ratelimit"]), Some("x-ratelimit"));
    }
}
