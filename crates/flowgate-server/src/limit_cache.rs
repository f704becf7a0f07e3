//! A cache of parsed limits for each event loop: clients send the same few limits with every call.
//!
//! Rule       A text has one slot, which holds the limit that was parsed there last. A hit costs a comparison and
//!            allocates nothing; a miss costs the parsing.
//! Bound      [`SLOTS`] texts of at most [`MAX_TEXT_BYTES`] bytes for each event loop.

use std::cell::RefCell;
use std::rc::Rc;

use flowgate::{Limit, LimitError};

const SLOTS: usize = 64;

/// A longer limit is parsed at every call. Nearly all limits are shorter.
const MAX_TEXT_BYTES: usize = 64;

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache { slots: vec![None; SLOTS], last: 0 });
}

struct Cache {
    slots: Vec<Option<ParsedLimit>>,
    /// The slot that was used last. The next call mostly needs the same one.
    last: usize,
}

#[derive(Clone)]
struct ParsedLimit {
    text: Box<str>,
    limit: Rc<Limit>,
}

/// The limit that `text` says, for a caller that applies it later.
///
/// # Errors
/// When `text` is not a limit.
#[inline]
pub(crate) fn parse(text: &str) -> Result<Rc<Limit>, LimitError> {
    CACHE.with_borrow_mut(|cache| match &cache.slots[cache.last] {
        Some(last) if *last.text == *text => Ok(Rc::clone(&last.limit)),
        _ => cache.parse(text),
    })
}

/// Calls `apply` with the limit that `text` says.
///
/// # Errors
/// When `text` is not a limit.
pub(crate) fn with<T>(text: &str, apply: impl FnOnce(&Limit) -> T) -> Result<T, LimitError> {
    parse(text).map(|limit| apply(&limit))
}

impl Cache {
    fn parse(&mut self, text: &str) -> Result<Rc<Limit>, LimitError> {
        if text.len() > MAX_TEXT_BYTES {
            return text.parse().map(Rc::new);
        }
        let index = slot_index(text);
        let limit = match &self.slots[index] {
            Some(parsed) if *parsed.text == *text => Rc::clone(&parsed.limit),
            _ => {
                let limit = Rc::new(text.parse()?);
                self.slots[index] = Some(ParsedLimit { text: text.into(), limit: Rc::clone(&limit) });
                limit
            }
        };
        self.last = index;
        Ok(limit)
    }
}

fn slot_index(text: &str) -> usize {
    // A client that forces collisions only pays for its own re-parsing.
    let mixed = text.bytes().fold(0_u32, |mixed, byte| (mixed ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (mixed ^ (mixed >> 16)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_always_stands_for_the_same_limit() {
        // More texts than slots, so that some replace others.
        let texts: Vec<_> = (1..=200).map(|count| format!("{count}/60s")).collect();
        for text in texts.iter().chain(&texts) {
            assert_eq!(with(text, Limit::to_string).unwrap(), format!("sliding {text}"));
            assert_eq!(with(text, Limit::to_string).unwrap(), format!("sliding {text}"));
        }
    }

    #[test]
    fn wrong_text_is_an_error_each_time_and_replaces_nothing() {
        let right = with("5/60s", Limit::clone).unwrap();
        for text in ["5/x", "", &"x".repeat(100)] {
            assert_eq!(with(text, |_| ()).unwrap_err().to_string(), text.parse::<Limit>().unwrap_err().to_string());
        }
        assert_eq!(with("5/60s", Limit::clone).unwrap(), right);
        let long = format!("fixed 5/day tz=UTC{}", " after=3/day".repeat(10));
        assert_eq!(with(&long, |_| ()).is_ok(), long.parse::<Limit>().is_ok());
    }
}
