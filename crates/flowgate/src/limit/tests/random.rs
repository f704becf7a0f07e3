//! Random limits and texts: what is built is read back, and no text makes the parser panic.

use proptest::prelude::*;

use super::*;

/// Limits built step by step rather than read, over everything the builder accepts.
fn built() -> impl Strategy<Value = Limit> {
    let algorithm = prop::sample::select(vec![
        Algorithm::Sliding,
        Algorithm::Fixed,
        Algorithm::Bucket,
        Algorithm::Pace,
        Algorithm::Approx,
    ]);
    let tz = prop::sample::select(vec!["UTC", "utc", "Asia/Shanghai", "america/new_york", "Australia/Lord_Howe"]);
    let options = (
        prop::option::of(count()),
        prop::option::of(max_wait()),
        prop::option::of(tz),
        prop::option::of((count(), period())),
    );
    (algorithm, micros(), period(), options).prop_filter_map(
        "cannot be built",
        |(algorithm, micros, period, options)| {
            let mut builder = LimitBuilder::new(algorithm, Rate::from_micros(micros, period).ok()?);
            let (burst, max_wait, tz, after) = options;
            if let (Some(burst), Algorithm::Bucket | Algorithm::Pace) = (burst, algorithm) {
                builder = builder.burst(burst);
            }
            if let (Some(max_wait), Algorithm::Pace) = (max_wait, algorithm) {
                builder = builder.max_wait(max_wait);
            }
            if let Some(tz) = tz {
                builder = builder.tz(tz);
            }
            if let Some((free, period)) = after {
                builder = builder.after(free, period);
            }
            builder.build().ok()
        },
    )
}

/// Counts of every magnitude.
fn count() -> impl Strategy<Value = u64> {
    (0u32..=12).prop_flat_map(|digits| 1..=10u64.pow(digits))
}

/// Counts in millionths: mostly whole, since most algorithms want that.
fn micros() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => count().prop_map(|count| count * MICRO),
        1 => (0u32..=18).prop_flat_map(|digits| 1..=10u64.pow(digits)),
    ]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![
        Unit::Microsecond,
        Unit::Millisecond,
        Unit::Second,
        Unit::Minute,
        Unit::Hour,
        Unit::Day,
        Unit::Week,
        Unit::Month,
    ])
}

fn period() -> impl Strategy<Value = Period> {
    let number = prop_oneof![Just(1), 1..400u64, 1..32_000_000_000_000u64];
    (number, unit()).prop_filter_map("not a period", |(number, unit)| Period::new(number, unit).ok())
}

fn max_wait() -> impl Strategy<Value = MaxWait> {
    let nanos = (0u32..=19).prop_flat_map(|digits| 0..=10u64.pow(digits));
    prop_oneof![
        1 => Just(MaxWait::Unbounded),
        1 => Just(MaxWait::AtMost(Span::ZERO)),
        2 => (0..40_000_000u64).prop_map(|secs| MaxWait::AtMost(Span::from_secs(secs))),
        2 => (0..40_000_000_000_000u64).prop_map(|micros| MaxWait::AtMost(Span::from_micros(micros))),
        2 => nanos.prop_map(|nanos| MaxWait::AtMost(Span::from_nanos(nanos))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn a_built_limit_is_read_back_from_its_text(limit in built()) {
        let text = limit.to_string();
        let read = text.parse::<Limit>();
        prop_assert_eq!(read.as_ref(), Ok(&limit), "{}", text);
        prop_assert_eq!(read.map(|limit| limit.to_string()), Ok(text));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = text.parse::<Limit>();
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = String::from_utf8_lossy(&bytes).parse::<Limit>();
    }

    #[test]
    fn no_words_of_the_language_make_the_parser_panic(words in prop::collection::vec(word(), 0..8)) {
        read_back(&words.concat())?;
    }

    #[test]
    fn no_mutation_of_a_limit_makes_the_parser_panic(limit in built(), edits in prop::collection::vec(edit(), 1..4)) {
        let mut text: Vec<char> = limit.to_string().chars().collect();
        for (at, removed, inserted) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        read_back(&String::from_iter(text))?;
    }
}

/// Every limit that the parser accepts has a canonical form.
fn read_back(text: &str) -> Result<(), TestCaseError> {
    if let Ok(limit) = text.parse::<Limit>() {
        prop_assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit), "{}", text);
    }
    Ok(())
}

/// Pieces from which both limits and near misses are made.
fn word() -> impl Strategy<Value = String> {
    let pieces = [
        "unlimited",
        "sliding",
        "fixed",
        "bucket",
        "pace",
        "approx",
        "leaky",
        "0",
        "1",
        "7",
        "0.5",
        "999999999999",
        ".",
        "/",
        "=",
        " ",
        " ",
        "s",
        "us",
        "d",
        "day",
        "month",
        "5/s",
        "100/60s",
        " burst=",
        " capacity=",
        " max_wait=",
        " tz=",
        " after=",
        "none",
        "UTC",
        "Asia/Shanghai",
        "-",
        "\u{ff15}",
    ];
    prop::sample::select(pieces.map(str::to_owned).to_vec())
}

/// Removes a few characters somewhere and inserts others.
fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let inserted = prop_oneof![word(), any::<char>().prop_map(String::from), Just(String::new())];
    (any::<prop::sample::Index>(), 0..4usize, inserted)
}
