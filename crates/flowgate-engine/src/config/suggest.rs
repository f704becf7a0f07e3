//! "Did you mean": the known word that is nearest to a mistyped one.

/// A hint with the nearest of the known words, if one is near.
pub fn did_you_mean<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<String> {
    nearest(written, known).map(|word| format!("did you mean \"{word}\"?"))
}

/// The known word that takes the fewest edits to reach; `None` if all are too different.
pub fn nearest<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if written.chars().nth(MAX_WORD_CHARS).is_some() {
        return None;
    }
    let written = comparable(written);
    let mut best = None;
    for word in known {
        let other = comparable(word);
        let edits = strsim::osa_distance(&written, &other);
        // People rarely mistype the first letter.
        let rank = (edits, written.chars().next() != other.chars().next());
        let is_near = edits <= max_edits(word.len().min(written.chars().count()));
        if is_near && best.is_none_or(|(best, _)| rank < best) {
            best = Some((rank, word));
        }
    }
    best.map(|(_, word)| word)
}

/// Without the case, and without the difference between `-` and `_`.
fn comparable(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

/// The longest known word is shorter, so a longer text is never a slip of one.
const MAX_WORD_CHARS: usize = 40;

/// A third of a word may be wrong; a suggestion beyond that misleads.
fn max_edits(length: usize) -> usize {
    (length / 3).min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(nearest("xratelimit", ["ratelimit", "x-ratelimit"]), Some("x-ratelimit"));
    }
}
