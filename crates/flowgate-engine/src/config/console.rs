//! `[console]`: the web page of the server, and what it keeps for it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::form;
use super::section::{Keys, Section};
use super::size::ByteSize;

/// The web page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// Whether the server answers with the page at `/`.
    pub enabled: bool,
    /// The most rules with a history of their own.
    pub history_rules: usize,
    /// When requests are recorded.
    pub sample: Sampling,
    /// The longest time that is recorded.
    pub sample_for: Duration,
    /// The most memory that recorded requests take.
    pub sample_memory: ByteSize,
    /// How long a login lasts.
    pub session: Duration,
}

/// When requests are recorded, to try other rules on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Never.
    Off,
    /// When an administrator asks for it.
    OnDemand,
    /// All the time: the last `sample_for` is kept.
    Always,
}

const SAMPLINGS: [(&str, Sampling); 3] =
    [("off", Sampling::Off), ("on demand", Sampling::OnDemand), ("always", Sampling::Always)];

/// A rule takes 25 kB, so this many take 50 MB.
const MAX_HISTORY_RULES: u64 = 2_000;
const SAMPLE_LENGTHS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
const SAMPLE_SIZES: RangeInclusive<ByteSize> = ByteSize::new(1_000_000)..=ByteSize::new(1_000_000_000);
const SESSION_LENGTHS: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(30 * 86_400);

impl Default for Console {
    fn default() -> Console {
        Console {
            enabled: true,
            history_rules: 300,
            sample: Sampling::OnDemand,
            sample_for: Duration::from_secs(600),
            sample_memory: ByteSize::new(16_000_000),
            session: Duration::from_secs(8 * 3600),
        }
    }
}

impl Section for Console {
    const NAME: &'static str = "console";

    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        keys.key("enabled", &mut self.enabled, form::boolean());
        keys.key("history_rules", &mut self.history_rules, form::integer(1..=MAX_HISTORY_RULES));
        keys.key("sample", &mut self.sample, form::word(&SAMPLINGS));
        keys.key("sample_for", &mut self.sample_for, form::span(SAMPLE_LENGTHS));
        keys.key("sample_memory", &mut self.sample_memory, form::size(SAMPLE_SIZES));
        keys.key("session", &mut self.session, form::span(SESSION_LENGTHS));
    }
}
