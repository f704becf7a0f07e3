//! Limits that an event loop has read lately: clients bring the same few with every call.
//!
//! Rule       A text leads to one place, which holds the last limit that was read there: a hit costs a comparison and
//!            no allocation, a miss costs the reading.
//! Bound      [`PLACES`] texts of at most [`MAX_TEXT`] bytes for each event loop.

use std::cell::RefCell;

use flowgate::{Limit, LimitError};

const PLACES: usize = 64;

/// Nearly all limits are shorter; a longer one is read every time.
const MAX_TEXT: usize = 64;

thread_local! {
    static READ: RefCell<Vec<Option<Read>>> = RefCell::new(vec![None; PLACES]);
}

#[derive(Clone)]
struct Read {
    text: Box<str>,
    limit: Limit,
}

/// Hands the limit that `text` stands for to `apply`.
///
/// # Errors
/// When it stands for none.
pub(crate) fn with<T>(text: &str, apply: impl FnOnce(&Limit) -> T) -> Result<T, LimitError> {
    if text.len() > MAX_TEXT {
        return text.parse().map(|limit| apply(&limit));
    }
    READ.with_borrow_mut(|places| {
        let place = &mut places[place(text)];
        if let Some(read) = place.as_ref().filter(|read| *read.text == *text) {
            return Ok(apply(&read.limit));
        }
        let read = place.insert(Read { limit: text.parse()?, text: text.into() });
        Ok(apply(&read.limit))
    })
}

fn place(text: &str) -> usize {
    // Who wants two texts to meet at a place slows itself down, by the reading.
    let mixed = text.bytes().fold(0_u32, |mixed, byte| (mixed ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (mixed ^ (mixed >> 16)) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_always_stands_for_the_same_limit() {
        // More than there are places, so that some are driven out.
        let texts: Vec<_> = (1..=200).map(|count| format!("{count}/60s")).collect();
        for text in texts.iter().chain(&texts) {
            assert_eq!(with(text, Limit::to_string).unwrap(), format!("sliding {text}"));
            assert_eq!(with(text, Limit::to_string).unwrap(), format!("sliding {text}"));
        }
    }

    #[test]
    fn what_is_wrong_stays_wrong_and_drives_nothing_out() {
        let right = with("5/60s", Limit::clone).unwrap();
        for text in ["5/x", "", &"x".repeat(100)] {
            assert_eq!(with(text, |_| ()).unwrap_err().to_string(), text.parse::<Limit>().unwrap_err().to_string());
        }
        assert_eq!(with("5/60s", Limit::clone).unwrap(), right);
        let long = format!("fixed 5/day tz=UTC{}", " after=3/day".repeat(10));
        assert_eq!(with(&long, |_| ()).is_ok(), long.parse::<Limit>().is_ok());
    }
}
