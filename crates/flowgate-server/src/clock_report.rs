//! Logs steps of the wall clock. `/metrics` counts them.

use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use flowgate::{Clock, ClockStatus, Span, Steps};

use crate::observer::Observer;

/// The clock compares itself with the wall clock once a second.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Watches the clock on the current runtime, for as long as the service of `observer` lives.
pub(crate) fn watch(clock: Clock, observer: Weak<Observer>) {
    tokio::spawn(async move {
        let mut report = ClockReport { last: clock.status(), behind: false };
        while observer.strong_count() > 0 {
            tokio::time::sleep(CHECK_INTERVAL).await;
            report.news(clock.status()).iter().for_each(News::log);
        }
    });
}

/// What the log has said about the clock.
struct ClockReport {
    last: ClockStatus,
    /// True if the log says that the wall clock is behind.
    behind: bool,
}

/// What to log about the clock.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Back { by: Span, ahead: Span },
    Forward { by: Span },
    Ignored { by: Span },
    CaughtUp,
}

impl ClockReport {
    fn news(&mut self, status: ClockStatus) -> Vec<News> {
        let last = std::mem::replace(&mut self.last, status);
        let is_new = |steps: Steps, before: Steps| (steps.count > before.count).then_some(steps.latest);
        let mut news = Vec::new();
        if let Some(by) = is_new(status.ignored, last.ignored) {
            news.push(News::Ignored { by });
        }
        if let Some(by) = is_new(status.forward, last.forward) {
            news.push(News::Forward { by });
        }
        if let Some(by) = is_new(status.back, last.back) {
            news.push(News::Back { by, ahead: status.ahead });
            self.behind = true;
        }
        if self.behind && status.ahead.is_zero() {
            news.push(News::CaughtUp);
            self.behind = false;
        }
        news
    }
}

impl News {
    fn log(&self) {
        match self {
            News::Back { .. } | News::Forward { .. } => tracing::warn!("{self}"),
            News::Ignored { .. } | News::CaughtUp => tracing::info!("{self}"),
        }
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            News::Back { by, ahead } => {
                let twice = *ahead + *ahead;
                write!(f, "the wall clock was put back by {by}: time runs at half speed for the next {twice}")
            }
            News::Forward { by } => write!(f, "the wall clock was put forward by {by}: time follows"),
            News::Ignored { by } => write!(f, "the wall clock was {by} ahead for a moment: ignored"),
            News::CaughtUp => write!(f, "the wall clock has caught up: time runs at full speed again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use flowgate::{ManualClock, Time};

    use super::*;

    #[test]
    fn each_step_back_is_told_once_and_so_is_its_end() {
        let clock = ManualClock::new(Time::from_secs(1_700_000_000));
        let status = || Clock::from(clock.clone()).status();
        let mut report = ClockReport { last: status(), behind: false };
        let hour = Span::from_secs(3600);
        assert_eq!(report.news(status()), []);
        clock.put_back(hour);
        let news = report.news(status());
        assert_eq!(news, [News::Back { by: hour, ahead: hour }]);
        let told = "the wall clock was put back by 3600s: time runs at half speed for the next 7200s";
        assert_eq!(news[0].to_string(), told);
        clock.advance(Span::from_secs(7199));
        assert_eq!(report.news(status()), []);
        clock.advance(Span::from_secs(1));
        assert_eq!(report.news(status()), [News::CaughtUp]);
        assert_eq!(report.news(status()), []);
    }

    #[test]
    fn steps_forward_and_what_was_ignored() {
        let mut report = ClockReport { last: ClockStatus::default(), behind: false };
        let steps = |count, latest| Steps { count, latest: Span::from_secs(latest) };
        let ignored = ClockStatus { ignored: steps(1, 3600), ..ClockStatus::default() };
        assert_eq!(report.news(ignored), [News::Ignored { by: Span::from_secs(3600) }]);
        let followed = ClockStatus { forward: steps(1, 7), ..ignored };
        assert_eq!(report.news(followed), [News::Forward { by: Span::from_secs(7) }]);
        assert_eq!(report.news(followed), []);
    }
}
