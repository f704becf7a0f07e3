//! A sentence for people, with what a program needs to say it in another language: a code and the values in it.
//!
//! Rule       A code names one sentence and never changes. Mistakes that authors of rules meet every day have one; the
//!            console says those in its own language, and shows the text of all others.

/// A sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The sentence in English.
    pub text: String,
    /// Its name; `None`: it has none, and is said in English only.
    pub code: Option<&'static str>,
    /// The values in it, by name.
    pub values: Vec<(&'static str, String)>,
}

impl Message {
    /// The sentence alone, without its code.
    pub(crate) fn uncoded(text: String) -> Message {
        Message { text, ..Message::default() }
    }
}

impl From<String> for Message {
    fn from(text: String) -> Message {
        Message::uncoded(text)
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Message {
        Message::uncoded(text.to_owned())
    }
}

/// A [`Message`] with a code: `coded!("unknown-list", "there is no list {name}", name = quoted(name))`.
macro_rules! coded {
    ($code:literal, $text:literal $(, $name:ident = $value:expr)* $(,)?) => {{
        $(let $name = ToString::to_string(&$value);)*
        $crate::config::message::Message {
            text: format!($text),
            code: Some($code),
            values: vec![$((stringify!($name), $name)),*],
        }
    }};
}
pub(crate) use coded;
