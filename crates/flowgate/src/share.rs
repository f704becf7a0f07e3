//! A share: a part of a whole, kept as an exact fraction.

use std::fmt;
use std::str::FromStr;

/// A part of a whole, as an exact fraction above 0 and up to 1. As a text: `1/3`, `1%`, `0.1%`.
///
/// ```
/// use flowgate::Share;
///
/// assert_eq!("12.5%".parse(), Ok(Share::new(1, 8).unwrap()));
/// assert!("2/1".parse::<Share>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    part: u64,
    whole: u64,
}

/// A text that is not a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a part of a whole, such as 1/3 or 0.1%, above 0 and up to 1")]
pub struct ShareError;

impl Share {
    /// The share of everything: 1/1.
    pub const ALL: Share = Share { part: 1, whole: 1 };

    /// `part` of `whole`; `None` unless `0 < part <= whole`.
    pub const fn new(part: u64, whole: u64) -> Option<Share> {
        if part == 0 || part > whole {
            return None;
        }
        let divisor = greatest_common_divisor(part, whole);
        Some(Share { part: part / divisor, whole: whole / divisor })
    }

    /// The numerator.
    pub const fn part(self) -> u64 {
        self.part
    }

    /// The denominator.
    pub const fn whole(self) -> u64 {
        self.whole
    }

    /// The share as a percentage if that is exact, else as a fraction.
    pub fn as_percentage(self) -> String {
        match PERCENT.is_multiple_of(self.whole) {
            true => {
                let scaled = self.part * (PERCENT / self.whole);
                let (whole, rest) = (scaled / 10_000, scaled % 10_000);
                let decimals = format!(".{rest:04}");
                format!("{whole}{}%", decimals.trim_end_matches('0').trim_end_matches('.'))
            }
            false => self.to_string(),
        }
    }
}

/// A hundred percent, in units of four decimals.
const PERCENT: u64 = 100 * 10_000;

impl Share {
    /// The share of a number, rounded down.
    pub(crate) fn of_number(self, number: u64) -> u64 {
        // The result is at most `number`, so it fits.
        (u128::from(number) * u128::from(self.part) / u128::from(self.whole)) as u64
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Share, ShareError> {
        let share = match text.strip_suffix('%') {
            Some(percentage) => {
                let (whole, decimals) = percentage.split_once('.').unwrap_or((percentage, "0"));
                if decimals.len() > 4 {
                    return Err(ShareError);
                }
                let scaled =
                    digits(whole)?.checked_mul(10_000).ok_or(ShareError)? + digits(&format!("{decimals:0<4}"))?;
                Share::new(scaled, PERCENT)
            }
            None => {
                let (part, whole) = text.split_once('/').ok_or(ShareError)?;
                Share::new(digits(part)?, digits(whole)?)
            }
        };
        share.ok_or(ShareError)
    }
}

/// Reads up to nine digits, so that nothing computed from them overflows.
fn digits(text: &str) -> Result<u64, ShareError> {
    let fits = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().map_err(|_| ShareError) } else { Err(ShareError) }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_and_percentages_are_shares() {
        let check =
            |text: &str, part, whole| assert_eq!(text.parse(), Share::new(part, whole).ok_or(ShareError), "{text}");
        check("1/1", 1, 1);
        check("2/6", 1, 3);
        check("1%", 1, 100);
        check("0.1%", 1, 1000);
        check("100%", 1, 1);
        check("12.5%", 1, 8);
        for text in ["", "0/1", "0%", "2/1", "101%", "1", "1/0", "-1/2", "1.0/2", "0.00001%", "%", "1/", ".5%"] {
            assert_eq!(text.parse::<Share>(), Err(ShareError), "{text}");
        }
    }

    #[test]
    fn percentages_only_where_exact() {
        let check = |text: &str, shown: &str| {
            let share: Share = text.parse().unwrap();
            assert_eq!(share.as_percentage(), shown);
            assert_eq!(share.as_percentage().parse(), Ok(share));
        };
        check("1%", "1%");
        check("0.05%", "0.05%");
        check("1/1", "100%");
        check("1/3", "1/3");
    }
}
