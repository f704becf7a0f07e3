//! `[console]`: the web page of the server, and what it keeps for it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::duration;
use super::report::Report;
use super::size::{self, ByteSize};
use super::table_reader::TableReader;
use super::value;
use super::writer::Writer;

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

impl Console {
    pub(crate) fn read(report: &mut Report, mut fields: TableReader<'_>) -> Console {
        let mut console = Console::default();
        fields.read_into(report, "enabled", &mut console.enabled, value::boolean);
        fields.read_into(report, "history_rules", &mut console.history_rules, |report, node| {
            value::integer(report, node, 1..=MAX_HISTORY_RULES).map(|number| number as usize)
        });
        fields.read_into(report, "sample", &mut console.sample, |report, node| value::word(report, node, &SAMPLINGS));
        fields.read_into(report, "sample_for", &mut console.sample_for, |report, node| {
            value::span(report, node, SAMPLE_LENGTHS)
        });
        fields.read_into(report, "sample_memory", &mut console.sample_memory, |report, node| {
            size::read(report, node, SAMPLE_SIZES)
        });
        fields.read_into(report, "session", &mut console.session, |report, node| {
            value::span(report, node, SESSION_LENGTHS)
        });
        fields.finish(report);
        console
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.section("console");
        out.raw("enabled", self.enabled);
        out.raw("history_rules", self.history_rules);
        out.text("sample", value::word_of(&SAMPLINGS, self.sample));
        out.text("sample_for", &duration::format(self.sample_for));
        out.text("sample_memory", &self.sample_memory.to_string());
        out.text("session", &duration::format(self.session));
    }
}
