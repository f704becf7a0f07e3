//! "Did you mean": the known word that is nearest to what was written.

/// A hint with the nearest of the known words, if one is near.
pub(crate) fn did_you_mean<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<String> {
    nearest(written, known).map(|word| format!("did you mean \"{word}\"?"))
}

/// The known word that takes the fewest edits to reach; `None` when even that one is a different word.
pub(crate) fn nearest<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let written: Vec<char> = comparable(written).take(MAX_WORD_CHARS + 1).collect();
    if written.len() > MAX_WORD_CHARS {
        return None;
    }
    let candidates = known.into_iter().map(|word| (edits(&written, word), word));
    let near = candidates.filter(|&(edits, word)| edits <= most_edits(word.len().min(written.len())));
    // People rarely mistype the first letter.
    let starts_differently = |word: &str| comparable(word).next() != written.first().copied();
    near.min_by_key(|&(edits, word)| (edits, starts_differently(word))).map(|(_, word)| word)
}

/// Without the case, and without the difference between `-` and `_`.
fn comparable(word: &str) -> impl Iterator<Item = char> {
    word.chars().flat_map(char::to_lowercase).map(|char| if char == '-' { '_' } else { char })
}

/// No known word is longer, so nothing longer can be a slip of one.
const MAX_WORD_CHARS: usize = 40;

/// A third of a word may be wrong; beyond that a suggestion only misleads.
fn most_edits(length: usize) -> usize {
    (length / 3).min(3)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edits(written: &[char], word: &str) -> usize {
    let word: Vec<char> = comparable(word).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=word.len()).collect();
    for (row, &char) in written.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &other) in word.iter().enumerate() {
            let replaced = last[column] + usize::from(char != other);
            let mut fewest = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && char == word[column - 1] && written[row - 1] == other {
                fewest = fewest.min(before_last[column - 1] + 1);
            }
            current.push(fewest);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood() {
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
