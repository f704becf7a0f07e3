//! The history of decisions: counts per second, per ten seconds and per minute, in all and by rule.
//!
//! State      For all requests, for each of at most `history_rules` rules and for the rest, a ring of counts for each
//!            [resolution](RESOLUTIONS). 25 kB a rule.
//! Rule       [`History::record`] reads tallies that count up and adds what is new to the steps. The recorder calls it once
//!            a second, and so does everybody who reads: a reader sees the requests until now.
//! Rule       What is new belongs to the second of the record before. A second without a record has its counts in the one
//!            before it; after more than [`MAX_MISSED_SECONDS`] the steps between are gaps, and what is new counts now.
//! Rule       A rule gets a place when it decides for the first time. If all places are taken, it takes that of the rule
//!            that was quiet longest, if that was [`QUIET_SECONDS`] or more; else it counts with the rest. What a rule had
//!            counted when it loses its place goes to the rest.

mod counts;
mod latency;
mod marks;
mod rings;
mod rule_places;

use std::borrow::Cow;
use std::cmp::Reverse;

use flowgate::Time;

use counts::saturating_sum;
pub(crate) use counts::{StepCounts, Tally};
use latency::Latencies;
pub(crate) use latency::{Latency, PROTOCOLS};
use marks::Marks;
pub(crate) use marks::{BanMark, Mark, MarkKind};
use rings::{RESOLUTIONS, Rings, Steps};
use rule_places::{Place, RulePlaces};

/// The longest time between two records without a gap in the history.
const MAX_MISSED_SECONDS: u64 = 3;

/// The values that are recorded besides the tallies of rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    /// The number of decisions without the shared store so far.
    pub(crate) degraded: u64,
    /// The bytes of counters in memory.
    pub(crate) memory: u64,
    /// The durations so far, by bucket, for each of [`PROTOCOLS`].
    pub(crate) latencies: [Vec<u64>; PROTOCOLS.len()],
}

/// How far back a reader looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    FiveMinutes,
    Hour,
    Day,
}

/// Counts of successive steps, oldest first; `None`: the step was not measured.
pub(crate) type Series = Vec<Option<StepCounts>>;

/// A part of the history.
#[derive(Debug)]
pub(crate) struct HistoryPart {
    /// The seconds of a step.
    pub(crate) step: u64,
    /// The end of the last step, which is still going on.
    pub(crate) end: u64,
    pub(crate) total: Series,
    /// Denials by rules with an action of their own.
    pub(crate) own_action: Vec<Option<u32>>,
    pub(crate) degraded: Vec<Option<u32>>,
    pub(crate) memory: Vec<Option<u64>>,
    /// The latencies of each of [`PROTOCOLS`].
    pub(crate) latencies: [Vec<Latency>; PROTOCOLS.len()],
    pub(crate) rules: Vec<(String, Series)>,
    /// The counts of all rules without a place of their own.
    pub(crate) other: Series,
    pub(crate) marks: Vec<Mark>,
}

/// The rules that a reader asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WantedRules {
    None,
    /// The rules that deny most, shadow rules included; at most this number of them.
    Top(usize),
    Named(Vec<String>),
}

#[derive(Debug)]
pub(crate) struct History {
    steps: Steps,
    total: Rings<StepCounts>,
    own_action: Rings<u32>,
    other: Rings<StepCounts>,
    degraded: Rings<u32>,
    degraded_before: u64,
    memory: Rings<u64>,
    latencies: Latencies,
    rules: RulePlaces,
    pub(super) marks: Marks,
    is_store_away: bool,
    /// When the shared store last changed between away and back; without a shared store, the start.
    pub(crate) store_since: Time,
}

impl History {
    pub(crate) fn new(max_rules: usize, started: Time) -> History {
        let mut marks = Marks::default();
        marks.note(started, MarkKind::Start);
        History {
            steps: Steps::new(seconds(started)),
            total: Rings::default(),
            own_action: Rings::default(),
            other: Rings::default(),
            degraded: Rings::default(),
            degraded_before: 0,
            memory: Rings::default(),
            latencies: Latencies::default(),
            rules: RulePlaces::new(max_rules),
            marks,
            is_store_away: false,
            store_since: started,
        }
    }

    /// Marks that other rules are in force. `is_in_force` knows their names.
    pub(crate) fn note_rules(&mut self, at: Time, version: Option<u64>, is_in_force: impl Fn(&str) -> bool) {
        self.marks.note(at, MarkKind::Rules { version });
        self.rules.others.retain(|name, _| is_in_force(name));
    }

    /// Marks a change of the shared store.
    pub(crate) fn note_store(&mut self, at: Time, is_away: bool) {
        if is_away != self.is_store_away {
            (self.is_store_away, self.store_since) = (is_away, at);
            self.marks.note(at, if is_away { MarkKind::Away } else { MarkKind::Back });
        }
    }

    /// The number of rules that have decided: with a history of their own, and without one.
    pub(super) fn number_of_rules(&self) -> (usize, usize) {
        (self.rules.places.len(), self.rules.others.len())
    }

    /// Adds what was counted since the last record.
    pub(crate) fn record<'r>(
        &mut self,
        now: Time,
        rules: impl Iterator<Item = (Cow<'r, str>, Tally)>,
        gauges: &Gauges,
    ) {
        let last = self.steps.last;
        let now = seconds(now).max(last);
        let is_gap = now - last > MAX_MISSED_SECONDS;
        let begun = self.steps.advance(now, is_gap);
        self.total.clear(&begun);
        self.own_action.clear(&begun);
        self.other.clear(&begun);
        self.degraded.clear(&begun);
        self.memory.clear(&begun);
        self.latencies.rings.clear(&begun);
        self.rules.clear(&begun);

        self.latencies.record(last, now, gauges);
        let second = if is_gap { now } else { last };
        let found = self.rules.record(rules, second);
        self.total.change(second, |counts| counts.add(found.total));
        self.own_action.change(second, |count| *count = saturating_sum(*count, found.total.own_action));
        self.other.change(second, |counts| counts.add(found.other));
        for displaced in &found.displaced {
            self.other.merge(displaced, StepCounts::merge);
        }
        let degraded = gauges.degraded.saturating_sub(self.degraded_before);
        self.degraded_before = gauges.degraded;
        self.degraded.change(second, |count| *count = saturating_sum(*count, degraded));
        self.memory.change(now, |bytes| *bytes = gauges.memory);
    }

    pub(crate) fn read(&self, range: Range, wanted: &WantedRules) -> HistoryPart {
        let resolution = RESOLUTIONS[range as usize];
        let last = self.steps.last;
        let kept: Vec<(u64, bool)> =
            resolution.kept(last).map(|start| (start, self.steps.is_measured(resolution, start))).collect();
        let series = |rings: &Rings<StepCounts>, since: u64| -> Series {
            let is_told = |start: u64| start + resolution.step > since;
            let count = |&(start, is_measured)| (is_measured && is_told(start)).then(|| *rings.get(resolution, start));
            kept.iter().map(count).collect()
        };
        let rule = |name: &str, place: &Place| (name.to_owned(), series(&place.counts, place.since));
        let rules = match wanted {
            WantedRules::None => Vec::new(),
            WantedRules::Named(names) => {
                names.iter().filter_map(|name| Some(rule(name, self.rules.places.get(name.as_str())?))).collect()
            }
            WantedRules::Top(most) => {
                let mut all: Vec<_> = self.rules.places.iter().map(|(name, place)| rule(name, place)).collect();
                let denied = |series: &Series| -> u64 {
                    series.iter().flatten().map(|counts| u64::from(counts.denied) + u64::from(counts.shadow)).sum()
                };
                all.sort_by_cached_key(|(name, series)| (Reverse(denied(series)), name.clone()));
                all.retain(|(_, series)| denied(series) > 0);
                all.truncate(*most);
                all
            }
        };
        let latencies = std::array::from_fn(|protocol| {
            kept.iter().map(|&(start, _)| self.latencies.get(resolution, start)[protocol]).collect()
        });
        let value = |rings: &Rings<u32>| {
            kept.iter().map(|&(start, is_measured)| is_measured.then(|| *rings.get(resolution, start))).collect()
        };
        HistoryPart {
            step: resolution.step,
            end: (last / resolution.step + 1) * resolution.step,
            total: series(&self.total, 0),
            own_action: value(&self.own_action),
            degraded: value(&self.degraded),
            memory: kept
                .iter()
                .map(|&(start, is_measured)| is_measured.then(|| *self.memory.get(resolution, start)))
                .map(|bytes| bytes.filter(|bytes| *bytes > 0))
                .collect(),
            latencies,
            rules,
            other: series(&self.other, 0),
            marks: self.marks.since(kept.first().map_or(0, |(start, _)| *start)),
        }
    }
}

fn seconds(time: Time) -> u64 {
    time.as_nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_040;

    struct Script {
        history: History,
        tallies: Vec<(&'static str, Tally)>,
    }

    impl Script {
        fn new(most: usize) -> Script {
            Script { history: History::new(most, Time::from_secs(START)), tallies: Vec::new() }
        }

        /// Lets a rule decide, and lets the recorder read this number of seconds after the start.
        fn at(&mut self, after: u64, decided: &[(&'static str, u64, u64)]) {
            for &(name, allowed, denied) in decided {
                let index = self.tallies.iter().position(|(known, _)| *known == name);
                let index = index.unwrap_or_else(|| {
                    self.tallies.push((name, Tally::default()));
                    self.tallies.len() - 1
                });
                self.tallies[index].1 += Tally { allowed, denied, ..Tally::default() };
            }
            let rules = self.tallies.iter().map(|(name, tally)| (Cow::from(*name), *tally));
            self.history.record(Time::from_secs(START + after), rules, &Gauges::default());
        }

        fn allowed(&self, range: Range, wanted: &str) -> Vec<Option<u32>> {
            let recorded = self.history.read(range, &WantedRules::Named(vec![wanted.to_owned()]));
            let series = match wanted {
                "total" => &recorded.total,
                "other" => &recorded.other,
                _ => &recorded.rules.first().unwrap_or_else(|| panic!("{wanted} has no place")).1,
            };
            series.iter().map(|counts| counts.map(|counts| counts.allowed)).collect()
        }
    }

    fn tail(series: &[Option<u32>], number: usize) -> &[Option<u32>] {
        &series[series.len() - number..]
    }

    #[test]
    fn counts_belong_to_the_second_before_the_record() {
        let mut script = Script::new(10);
        script.at(1, &[("a", 5, 0)]);
        script.at(2, &[("a", 7, 0), ("b", 1, 0)]);
        script.at(2, &[("a", 1, 0)]);
        let a = script.allowed(Range::FiveMinutes, "a");
        assert_eq!(a.len(), 300);
        assert_eq!(tail(&a, 4), [None, Some(5), Some(7), Some(1)]);
        assert_eq!(tail(&script.allowed(Range::FiveMinutes, "total"), 3), [Some(5), Some(8), Some(1)]);
        assert_eq!(tail(&script.allowed(Range::Hour, "a"), 1), [Some(13)]);
        assert_eq!(script.allowed(Range::Day, "a").len(), 1_440);
        let recorded = script.history.read(Range::FiveMinutes, &WantedRules::None);
        assert_eq!((recorded.step, recorded.end), (1, START + 3), "the last step lasts still");
        assert_eq!(script.history.read(Range::Hour, &WantedRules::None).end, START + 10);
    }

    #[test]
    fn a_late_record_is_no_gap_and_a_long_pause_is_one() {
        let mut script = Script::new(10);
        script.at(3, &[("a", 5, 0)]);
        assert_eq!(tail(&script.allowed(Range::FiveMinutes, "a"), 4), [Some(5), Some(0), Some(0), Some(0)]);
        script.at(8, &[("a", 6, 0)]);
        let gap = [Some(0), None, None, None, None, Some(6)];
        assert_eq!(tail(&script.allowed(Range::FiveMinutes, "a"), 6), gap);
        script.at(10_000, &[]);
        assert_eq!(tail(&script.allowed(Range::FiveMinutes, "a"), 2), [None, Some(0)]);
        assert_eq!(script.allowed(Range::Hour, "a").iter().flatten().count(), 1, "the hour before is gone");
        assert_eq!(script.allowed(Range::Day, "a").iter().flatten().sum::<u32>(), 11);
    }

    #[test]
    fn rings_hold_what_they_should_and_no_more() {
        let mut script = Script::new(10);
        for second in 1..=90_000 {
            script.at(second, &[("a", 1, 0)]);
        }
        let sum = |range| script.allowed(range, "a").iter().flatten().sum::<u32>();
        assert_eq!(sum(Range::FiveMinutes), 299, "the last step has only begun");
        assert_eq!((sum(Range::Hour), sum(Range::Day)), (3_590, 86_340));
    }

    #[test]
    fn a_busy_rule_takes_the_place_of_the_one_quiet_longest() {
        let mut script = Script::new(2);
        script.at(1, &[("a", 1, 0), ("b", 2, 0)]);
        script.at(2, &[("c", 4, 0)]);
        assert_eq!(tail(&script.allowed(Range::FiveMinutes, "other"), 2), [Some(4), Some(0)]);
        for second in 3..=QUIET + 2 {
            script.at(second, &[("b", 1, 0)]);
        }
        script.at(QUIET + 3, &[("c", 8, 0)]);
        let recorded = script.history.read(Range::Hour, &WantedRules::Named(vec!["a".into(), "b".into(), "c".into()]));
        let names: Vec<&str> = recorded.rules.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "c"]);
        let sum = |series: &Series| series.iter().flatten().map(|counts| u64::from(counts.allowed)).sum::<u64>();
        assert_eq!(sum(&recorded.other), 4 + 1, "what the rule had counted is with the rest");
        assert_eq!(sum(&recorded.rules[1].1), 8);
        let all: u64 = recorded.rules.iter().map(|(_, series)| sum(series)).sum::<u64>() + sum(&recorded.other);
        assert_eq!(all, sum(&recorded.total));
        script.at(QUIET + 4, &[("a", 16, 0)]);
        assert_eq!(tail(&script.allowed(Range::FiveMinutes, "other"), 2), [Some(16), Some(0)], "only what is new");
    }

    const QUIET: u64 = 600;

    #[test]
    fn a_tally_that_begins_anew_is_counted_whole() {
        let mut script = Script::new(2);
        script.at(1, &[("a", 10, 0)]);
        script.tallies[0].1 = Tally { allowed: 3, ..Tally::default() };
        script.at(2, &[]);
        assert_eq!(tail(&script.allowed(Range::FiveMinutes, "a"), 3), [Some(10), Some(3), Some(0)]);
    }

    #[test]
    fn the_rules_that_deny_most_come_first() {
        let mut script = Script::new(10);
        script.at(1, &[("a", 9, 1), ("b", 0, 5), ("c", 9, 0), ("d", 0, 3)]);
        let top = |most| {
            let recorded = script.history.read(Range::FiveMinutes, &WantedRules::Top(most));
            recorded.rules.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!((top(2), top(10)), (vec!["b".into(), "d".into()], vec!["b".into(), "d".into(), "a".into()]));
    }

    #[test]
    fn the_history_of_300_rules_fits_into_8_megabytes() {
        let mut history = History::new(300, Time::from_secs(START));
        let tally = Tally { allowed: 1, denied: 1, shadow: 1, own_action: 0 };
        let names: Vec<String> = (0..1_000).map(|number| format!("rule-{number:0120}")).collect();
        let rules = names.iter().map(|name| (Cow::from(name), tally));
        history.record(Time::from_secs(START + 1), rules, &Gauges::default());
        let state = &history;
        let rings = [state.total.bytes(), state.other.bytes(), state.degraded.bytes(), state.memory.bytes()];
        let bytes = rings.iter().sum::<usize>() + state.latencies.bytes() + state.rules.bytes();
        assert!((7_000_000..8_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn latencies_are_told_once_their_step_is_over() {
        let mut history = History::new(1, Time::from_secs(START));
        let mut gauges = Gauges::default();
        // A hundred durations of up to five microseconds, one of up to ten.
        gauges.latencies[1] = vec![100, 1];
        history.record(Time::from_secs(START + 5), std::iter::empty(), &gauges);
        let http = |history: &History, range| history.read(range, &WantedRules::None).latencies[1].clone();
        assert_eq!(http(&history, Range::Hour).last().unwrap().p50, None);
        gauges.latencies[1] = vec![100, 1];
        history.record(Time::from_secs(START + 10), std::iter::empty(), &gauges);
        let told = http(&history, Range::Hour);
        let told = told[told.len() - 2];
        assert!(told.p50.is_some_and(|p50| (1..=5).contains(&p50)) && told.p99.is_some(), "{told:?}");
        let by_second = http(&history, Range::FiveMinutes);
        assert_eq!(by_second[by_second.len() - 2], told);
    }

    #[test]
    fn marks_are_bounded_and_those_of_the_range_are_told() {
        let mut history = History::new(1, Time::from_secs(START));
        for number in 0..400 {
            history.marks.note(Time::from_secs(START + number), MarkKind::Rules { version: Some(number) });
        }
        history.record(Time::from_secs(START + 400), std::iter::empty(), &Gauges::default());
        let marks = |history: &History, range| history.read(range, &WantedRules::None).marks;
        assert_eq!((marks(&history, Range::Day).len(), marks(&history, Range::FiveMinutes).len()), (256, 256));
        history.record(Time::from_secs(START + 600), std::iter::empty(), &Gauges::default());
        assert_eq!(marks(&history, Range::FiveMinutes).len(), 99);
    }

    #[test]
    fn marks_of_bans_leave_the_others_their_place() {
        let mut history = History::new(1, Time::from_secs(START));
        let ban = || BanMark::new(&"user".into(), &"7".into(), &crate::Author::PROGRAM);
        for number in 0..400 {
            history.marks.note(Time::from_secs(START + 1 + number), MarkKind::Ban(ban()));
        }
        history.marks.note(Time::from_secs(START + 2), MarkKind::Pause);
        history.marks.note(Time::from_secs(START + 500), MarkKind::Lift(ban()));
        history.record(Time::from_secs(START + 600), std::iter::empty(), &Gauges::default());
        let marks = history.read(Range::Day, &WantedRules::None).marks;
        assert_eq!(marks.len(), 2 + 256);
        assert_eq!((&marks[0].kind, &marks[1].kind), (&MarkKind::Start, &MarkKind::Pause));
        assert_eq!(marks.last().unwrap().kind, MarkKind::Lift(ban()));
        assert!(marks.is_sorted_by_key(|mark| mark.at));
    }
}
