//! `/v1/sample`: records traffic. `POST /v1/rules/try`: what would a draft have done to it?

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use flowgate::{Span, Time};
use flowgate_api::{Sample, SampleOrder};
use flowgate_engine::RuleSet;
use flowgate_engine::config::{ByteSize, Config, Sampling, parse_duration};
use flowgate_replay::{Format, Job, Names, Replay, Source, Summary};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, body, rules};
use crate::recent::{LEFT_OUT, RecordedTrace};
use crate::service::Service;

/// The longest time of a try.
const LONGEST_TRY: Span = Span::from_secs(10);

/// The counters of each of the two policies.
const TRY_MEMORY: ByteSize = ByteSize::new(32_000_000);

/// A try works for a quarter of the time and rests for the rest.
const RESTS_PER_WORK: u32 = 3;

/// `{"state":"recording","since":..,"until":..,"requests":48210,"bytes":..,"max_bytes":..,"one_in":1,"by":"ip","left_out":[..]}`.
pub(super) fn read(call: &Call<'_>) -> Reply {
    told(&call.shared.service)
}

/// `{"for":"5m"}` -> the recording.
pub(super) async fn start(call: &Call<'_>, body: Incoming) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let SampleOrder { length } = body::parse(&body)?;
    let service = &call.shared.service;
    let sample = &service.recent().sample;
    let longest = sample.longest();
    let length = match parse_duration(&length.0).map(Span::from) {
        Some(length) if !length.is_zero() && length <= longest => length,
        _ => return Err(Error::invalid("for", format!("expected a length such as \"5m\", at most {longest}"))),
    };
    match sample.mode() {
        Sampling::Off => return Err(Error::Forbidden("nothing is recorded: console.sample is \"off\"")),
        Sampling::OnDemand => sample.start(service.now(), Some(length), commonest_field(&service.rules())),
        // It goes on all the time.
        Sampling::Always => {}
    }
    Ok(told(service))
}

/// Forgets the recording.
pub(super) fn forget(call: &Call<'_>) -> Reply {
    let service = &call.shared.service;
    service.recent().sample.forget(service.now());
    told(service)
}

/// The field that most rules count by.
pub(crate) fn commonest_field(rules: &RuleSet) -> String {
    let mut counts: hashbrown::HashMap<&str, usize> = hashbrown::HashMap::new();
    for field in rules.rules().iter().flat_map(|rule| rule.by()) {
        *counts.entry(field).or_default() += 1;
    }
    let commonest = counts.into_iter().max_by_key(|(field, count)| (*count, std::cmp::Reverse(*field)));
    commonest.map(|(field, _)| field.to_owned()).unwrap_or_default()
}

fn told(service: &Service) -> Reply {
    let sample = &service.recent().sample;
    let status = sample.status(service.now());
    let state = match (&status, sample.mode()) {
        (Some(status), _) if status.is_recording => "recording",
        (Some(_), _) => "recorded",
        (None, Sampling::Off) => "off",
        (None, _) => "empty",
    };
    reply::json(&Sample {
        now: service.now().into(),
        state: state.into(),
        since: status.as_ref().map(|status| status.since.into()),
        until: status.as_ref().and_then(|status| status.until).map(Into::into),
        requests: status.as_ref().map_or(0, |status| status.requests as u64),
        bytes: status.as_ref().map_or(0, |status| status.bytes as u64),
        max_bytes: sample.max_bytes() as u64,
        longest: sample.longest().into(),
        one_in: status.as_ref().map_or(1, |status| status.one_in),
        by: status.map(|status| status.by.into()),
        left_out: LEFT_OUT.map(Into::into).into(),
    })
}

/// Marks that a try is over, or that its client has left.
struct Trying<'a> {
    is_busy: &'a AtomicBool,
    is_stopped: Arc<AtomicBool>,
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        self.is_stopped.store(true, Relaxed);
        self.is_busy.store(false, Relaxed);
    }
}

/// A draft as TOML -> the summary of `flowgate replay --json --compare`, and what the sample cannot judge.
pub(super) async fn try_rules(call: &Call<'_>, body: Incoming) -> Result<Reply, Error> {
    let text = rules::text(call, body).await?;
    let (in_force, draft) = rules::both(call, text).await?;
    let service = call.shared.service.clone();
    let trace = service.recent().sample.trace().ok_or(Error::NothingRecorded)?;
    if call.shared.is_trying.swap(true, Relaxed) {
        return Err(Error::TryUnderWay);
    }
    let is_stopped = Arc::new(AtomicBool::new(false));
    let _trying = Trying { is_busy: &call.shared.is_trying, is_stopped: Arc::clone(&is_stopped) };
    let work = move || replay(&service, in_force, draft, &trace, &is_stopped);
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| Error::Overloaded)?;
    done.map(reply::json_text)
}

fn replay(
    service: &Service,
    mut in_force: Config,
    mut draft: Config,
    trace: &RecordedTrace,
    is_stopped: &AtomicBool,
) -> Result<Vec<u8>, Error> {
    (in_force.store.max_memory, draft.store.max_memory) = (TRY_MEMORY, TRY_MEMORY);
    let job =
        Job { config: &in_force, compare: Some(&draft), what_if: true, decisions: None, reorder: Span::from_secs(1) };
    let mut replay = Replay::new(job).map_err(|error| Error::Body(error.to_string()))?;
    let source = Source::Memory(trace.text.as_slice().into());
    let began = service.monotonic();
    let mut last = began;
    let mut rest = |_| {
        let now: Time = service.monotonic();
        if is_stopped.load(Relaxed) || now.since(began) > LONGEST_TRY {
            return ControlFlow::Break(());
        }
        std::thread::sleep(Duration::from_nanos(now.since(last).as_nanos()) * RESTS_PER_WORK);
        last = service.monotonic();
        ControlFlow::Continue(())
    };
    replay.read(&source, Some(Format::Jsonl), &mut rest).map_err(|_| Error::TryTooLong)?;
    let names = Names { traces: vec!["sample".into()], policy: "in force".into(), compare: "draft".into() };
    let (summary, finished) = replay.finish(names);
    finished.map_err(|_| Error::TryTooLong)?;
    Ok(reply::written(&document(&summary, &draft, trace)))
}

fn document(summary: &Summary, draft: &Config, trace: &RecordedTrace) -> Value {
    // A summary has no key that is not a text.
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
