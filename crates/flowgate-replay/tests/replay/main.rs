//! What a replay reads, decides, counts and draws.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod comparing;
mod fields;
mod fuzzing;
mod ordering;
mod page;
mod rows;
mod summing_up;
mod vectors;
mod what_if;

use std::io::Write;
use std::ops::ControlFlow;

use flowgate::Span;
use flowgate_engine::config::Config;
use flowgate_replay::{DecisionWriter, Job, Names, Replay, Source, Summary};
use serde_json::Value;

/// A trace and the policies to try on it.
struct Trial<'a> {
    policy: &'a str,
    compare: Option<&'a str>,
    what_if: bool,
    reorder: Span,
    trace: &'a [u8],
}

impl<'a> Trial<'a> {
    fn new(policy: &'a str, trace: &'a [u8]) -> Trial<'a> {
        Trial { policy, compare: None, what_if: false, reorder: flowgate_replay::DEFAULT_WINDOW, trace }
    }

    fn compare(self, policy: &'a str) -> Trial<'a> {
        Trial { compare: Some(policy), ..self }
    }

    fn what_if(self) -> Trial<'a> {
        Trial { what_if: true, ..self }
    }

    fn reorder(self, seconds: u64) -> Trial<'a> {
        Trial { reorder: Span::from_secs(seconds), ..self }
    }

    /// The summary; the policies are called `flowgate.toml` and `next.toml`.
    fn summary(&self) -> Summary {
        self.run(None)
    }

    /// The summary as JSON.
    fn json(&self) -> Value {
        serde_json::to_value(self.summary()).unwrap()
    }

    /// The decision lines.
    fn decisions(&self) -> String {
        let mut out = Vec::new();
        self.run(Some(&mut out));
        String::from_utf8(out).unwrap()
    }

    fn run(&self, decisions: Option<&mut Vec<u8>>) -> Summary {
        let config = Config::from_toml(self.policy).unwrap();
        let compare = self.compare.map(|policy| Config::from_toml(policy).unwrap());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(self.trace).unwrap();
        let decisions = decisions.map(|out| DecisionWriter::new(out, 1));
        let job =
            Job { config: &config, compare: compare.as_ref(), what_if: self.what_if, decisions, reorder: self.reorder };
        let mut replay = Replay::new(job).unwrap();
        replay.read(&Source::new(file.path()), None, &mut |_| ControlFlow::Continue(())).unwrap();
        let names = Names {
            traces: vec!["trace".to_owned()],
            policy: "flowgate.toml".to_owned(),
            compare: "next.toml".to_owned(),
        };
        let (summary, written) = replay.finish(names);
        written.unwrap();
        summary
    }
}

/// A trace of one field and whole seconds.
fn trace(requests: &[(u64, &str)]) -> Vec<u8> {
    let line = |(second, user): &(u64, &str)| format!("{{\"ts\":{second},\"fields\":{{\"user\":\"{user}\"}}}}\n");
    requests.iter().map(line).collect::<String>().into_bytes()
}
