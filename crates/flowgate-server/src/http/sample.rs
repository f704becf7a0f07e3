//! `/v1/sample` records traffic. `POST /v1/rules/try` shows what a draft would have done to it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use flowgate::Span;
use flowgate_api::SampleOrder;
use flowgate_engine::RuleSet;
use flowgate_engine::config::{ByteSize, Config, Sampling, parse_duration};
use flowgate_replay::{Format, Job, Names, Replay, Source, Summary};
use serde_json::{Value, json};

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, body, rules};
use crate::recent::{RecordedTrace, TryEnd};
use crate::service::Service;

/// The longest time of a try.
const LONGEST_TRY: Span = Span::from_secs(10);

/// The memory for the counters of each of the two policies.
const TRY_MEMORY: ByteSize = ByteSize::new(32_000_000);

/// A try rests three times as long as it works.
const RESTS_PER_WORK: u64 = 3;

/// The time between two checks of a resting try whether it is to end.
const LOOK: Duration = Duration::from_millis(5);

/// `{"state":"recording","since":..,"until":..,"requests":48210,"bytes":..,"max_bytes":..,"one_in":1,"by":"ip","left_out":[..]}`.
pub(super) fn read(call: &Call<'_>) -> Reply {
    let service = &call.shared.service;
    reply::json(&service.recent().sample.status(service.now()))
}

/// `{"for":"5m"}` -> the recording. `0s` ends the one under way and keeps it.
pub(super) async fn start(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let SampleOrder { length } = body::parse(&body)?;
    let service = &call.shared.service;
    let sample = &service.recent().sample;
    let longest = sample.longest;
    let length = match parse_duration(&length.0).map(Span::from) {
        Some(length) if length <= longest => length,
        _ => return Err(Error::invalid("for", format!("expected a length such as \"5m\", at most {longest}"))),
    };
    match sample.mode {
        Sampling::Off => return Err(Error::Forbidden("nothing is recorded: console.sample is \"off\"")),
        Sampling::OnDemand if length.is_zero() => sample.stop(service.now()),
        Sampling::OnDemand => sample.start(service.now(), Some(length), commonest_field(&service.rules())),
        // A recording without an end goes on.
        Sampling::Always => {}
    }
    Ok(read(call))
}

/// Forgets the recording.
pub(super) fn forget(call: &Call<'_>) -> Reply {
    let service = &call.shared.service;
    service.recent().sample.forget(service.now());
    read(call)
}

/// The field that most rules count by.
pub(crate) fn commonest_field(rules: &RuleSet) -> String {
    let mut counts: hashbrown::HashMap<&str, usize> = hashbrown::HashMap::new();
    for field in rules.rules.iter().flat_map(|rule| rule.by()) {
        *counts.entry(field).or_default() += 1;
    }
    let commonest = counts.into_iter().max_by_key(|(field, count)| (*count, std::cmp::Reverse(*field)));
    commonest.map(|(field, _)| field.to_owned()).unwrap_or_default()
}

/// Tells a try that its client has gone, unless it has ended.
struct Leaving(Arc<AtomicBool>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The try under way. Its thread holds this value, so that the next try begins only when the thread has ended.
struct Trying {
    service: Service,
    end: TryEnd,
}

impl Drop for Trying {
    fn drop(&mut self) {
        self.service.recent().tries.end(self.end);
    }
}

/// A draft as TOML -> the summary of `flowgate replay --json --compare`, and what the sample cannot judge.
pub(super) async fn try_rules(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let text = rules::text(call, body).await?;
    let (in_force, draft) = rules::both(call, text).await?;
    let service = call.shared.service.clone();
    let began = service.monotonic();
    if !service.recent().tries.begin() {
        return Err(Error::TryUnderWay);
    }
    let mut trying = Trying { service, end: TryEnd::Finished };
    let has_left = Arc::new(AtomicBool::new(false));
    let leaving = Leaving(Arc::clone(&has_left));
    let work = move || {
        let Trying { service, end } = &mut trying;
        let trace = service.recent().sample.trace().ok_or(Error::NothingRecorded)?;
        let mut slice = began;
        let mut go_on = || {
            let worked = service.monotonic().since(slice).as_nanos();
            let rested = slice + Span::from_nanos(worked.saturating_mul(1 + RESTS_PER_WORK));
            *end = loop {
                let now = service.monotonic();
                if has_left.load(Relaxed) {
                    break TryEnd::Left;
                }
                if now.since(began) > LONGEST_TRY {
                    break TryEnd::TooLong;
                }
                if now >= rested {
                    slice = now;
                    return ControlFlow::Continue(());
                }
                thread::sleep(LOOK);
            };
            ControlFlow::Break(())
        };
        replay(in_force, draft, TRY_MEMORY, &trace, &mut go_on)
    };
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| Error::Overloaded)?;
    drop(leaving);
    done.map(reply::json_text)
}

/// Replays a trace, with `memory` for the counters of each policy, for as long as `go_on` lets it.
fn replay(
    mut in_force: Config,
    mut draft: Config,
    memory: ByteSize,
    trace: &RecordedTrace,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Vec<u8>, Error> {
    (in_force.store.max_memory, draft.store.max_memory) = (memory, memory);
    let job =
        Job { config: &in_force, compare: Some(&draft), what_if: true, decisions: None, reorder: Span::from_secs(1) };
    let mut replay = Replay::new(job).map_err(|error| Error::Body(error.to_string()))?;
    let source = Source::Memory(trace.text.as_slice().into());
    replay.read(&source, Some(Format::Jsonl), &mut |_| go_on()).map_err(|_| Error::TryTooLong)?;
    let names = Names { traces: vec!["sample".into()], policy: "in force".into(), compare: "draft".into() };
    let (summary, finished) = replay.finish(names);
    finished.map_err(|_| Error::TryTooLong)?;
    Ok(reply::written(&document(&summary, &draft, trace)))
}

fn document(summary: &Summary, draft: &Config, trace: &RecordedTrace) -> Value {
    // The keys of a summary are texts, so it can always be written.
    let mut document = serde_json::to_value(summary).unwrap_or_default();
    if let Some(members) = document.as_object_mut() {
        members.insert("horizon".into(), trace.length.as_secs_ceil().into());
        members.insert("one_in".into(), trace.one_in.into());
        members.insert("cannot_judge".into(), cannot_judge(draft, trace).into());
    }
    document
}

/// The limits of the draft that the sample says too little about.
fn cannot_judge(draft: &Config, trace: &RecordedTrace) -> Vec<Value> {
    let mut found = Vec::new();
    for rule in &draft.policy.rules {
        for limit in rule.limits.iter() {
            let is_long =
                limit.rate().is_some_and(|rate| rate.period().length().is_none_or(|length| length > trace.length));
            let is_partial = trace.one_in > 1 && rule.by.iter().all(|field| *field != trace.by);
            let why = match (is_long, is_partial) {
                (true, _) => "longer than the sample",
                (false, true) => "counts by another field than the sample, so its counts are too low",
                (false, false) => continue,
            };
            found.push(json!({"rule": rule.name, "limit": limit.to_string(), "why": why}));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_has_64_megabytes_for_the_counters_of_both_policies() {
        assert_eq!(2 * TRY_MEMORY.bytes(), 64_000_000);
        let config = || Config::from_toml("rule = [{ name = 'reply', by = ['user'], limits = ['5/60s'] }]").unwrap();
        let line = |user| format!("{{\"ts\":1700000000,\"fields\":{{\"user\":\"{user}\"}}}}\n");
        let text = (0..20_000).map(line).collect::<String>().into_bytes();
        let trace = RecordedTrace { text, length: Span::from_secs(1), one_in: 1, by: "user".to_owned() };
        let evicted = |memory| {
            let written = replay(config(), config(), memory, &trace, &mut || ControlFlow::Continue(())).unwrap();
            let document: Value = serde_json::from_slice(&written).unwrap();
            document["evicted"].as_u64().unwrap()
        };
        assert_eq!(evicted(TRY_MEMORY), 0);
        assert!(evicted(ByteSize::new(100_000)) > 0, "the memory that is given bounds the counters");
    }
}
