//! A subject as people see it: the names and values that a rule counts by, or a key.

/// The most bytes of a subject's names and values. Clients choose values, so long ones are cut.
pub(crate) const MAX_SUBJECT_BYTES: usize = 128;

/// The character that ends a name and a value. It is removed from names and values that contain it.
const END: char = '\0';

/// Names and values in one text of bounded length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subject {
    /// Each name and each value with its [`END`]. A key has an empty name.
    text: Box<str>,
    /// False if a value was cut or changed: other subjects may then look the same.
    pub(crate) is_whole: bool,
}

impl Subject {
    /// The names and values; `None`: there are none.
    pub(crate) fn of_fields<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Subject> {
        let (mut text, mut is_whole) = (String::new(), true);
        for part in fields.flat_map(|(name, value)| [name, value]) {
            let room = MAX_SUBJECT_BYTES.saturating_sub(text.len());
            let cut = &part[..part.floor_char_boundary(room)];
            is_whole &= cut.len() == part.len() && !part.contains(END);
            text.extend(cut.chars().filter(|character| *character != END));
            text.push(END);
        }
        (!text.is_empty()).then(|| Subject { text: text.into(), is_whole })
    }

    /// The subject of an ad hoc key.
    pub(crate) fn of_key(key: &[u8]) -> Subject {
        // A few bytes more than are kept, so that a cut is noticed.
        let start = String::from_utf8_lossy(&key[..key.len().min(MAX_SUBJECT_BYTES + 4)]);
        let empty = Subject { text: Box::default(), is_whole: true };
        Subject::of_fields(std::iter::once(("", &*start))).unwrap_or(empty)
    }

    /// The names and values, cut where they were too long.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.text.split_terminator(END);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// `name=value name=value` on one line, or the key.
    pub(crate) fn shown(&self) -> String {
        let mut shown = one_line(self.fields(), usize::MAX);
        if !self.is_whole {
            shown.push_str("...");
        }
        shown
    }
}

/// `name=value name=value`, on one line and at most about `most` bytes long. A value without a name stands alone.
pub(crate) fn one_line<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>, most: usize) -> String {
    let mut line = String::new();
    for (name, value) in fields {
        let blank = if line.is_empty() { "" } else { " " };
        let parts = if name.is_empty() { [blank, "", "", value] } else { [blank, name, "=", value] };
        for character in parts.into_iter().flat_map(str::chars) {
            if line.len() >= most {
                return line + "...";
            }
            match character.is_control() {
                true => line.extend(character.escape_default()),
                false => line.push(character),
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_and_on_one_line() {
        let fields = [("user", "42"), ("ip", "1.2.3.4\n\u{1b}[31m")];
        assert_eq!(one_line(fields.into_iter(), 99), "user=42 ip=1.2.3.4\\n\\u{1b}[31m");
        assert_eq!(one_line([("user", "x".repeat(500).as_str())].into_iter(), 10), "user=xxxxx...");
    }

    #[test]
    fn a_subject_is_short_and_on_one_line() {
        let subject =
            Subject::of_fields([("user", "42"), ("ip", "1.2.3.4\n\u{1b}[31m"), ("x", "")].into_iter()).unwrap();
        assert_eq!(subject.shown(), "user=42 ip=1.2.3.4\\n\\u{1b}[31m x=");
        let fields: Vec<_> = subject.fields().collect();
        assert_eq!(fields, [("user", "42"), ("ip", "1.2.3.4\n\u{1b}[31m"), ("x", "")]);
        assert!(subject.is_whole);
        assert_eq!(Subject::of_fields(std::iter::empty()), None);
    }

    #[test]
    fn a_long_subject_is_cut_and_says_so() {
        let long = "\u{4e2d}".repeat(500);
        let subject = Subject::of_fields([("user", long.as_str()), ("ip", "1.2.3.4")].into_iter()).unwrap();
        assert!(!subject.is_whole && subject.text.len() <= MAX_SUBJECT_BYTES + 4);
        assert!(subject.shown().ends_with("..."), "{}", subject.shown());
        let key = Subject::of_key(&[b'k'; 1 << 20]);
        assert_eq!((key.shown().len(), key.is_whole), (MAX_SUBJECT_BYTES - 1 + 3, false));
        assert_eq!(Subject::of_key(b"user:42\xff").shown(), "user:42\u{fffd}");
        assert_eq!(Subject::of_key(b"").shown(), "");
    }

    #[test]
    fn a_value_with_the_separator_makes_no_other_fields() {
        let subject = Subject::of_fields([("user", "42\0admin\0yes")].into_iter()).unwrap();
        assert_eq!(subject.fields().collect::<Vec<_>>(), [("user", "42adminyes")]);
        assert!(!subject.is_whole);
    }
}
