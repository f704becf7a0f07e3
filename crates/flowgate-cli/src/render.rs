//! A server's answers as text for people.
//!
//! Rule       The first line says what matters. Colours repeat what the words say, and never replace it.
//! Rule       What the server leaves out is left out here.

mod instant;

pub(crate) use instant::{instant, roughly};

use std::fmt::Write;

use flowgate::{Clock, Span, Time};
use flowgate_api::{
    Bans, Decision, Explanation, FrontReport, LimitReport, ManualBan, Millis, NewBan, Pause, RuleReport,
};
use flowgate_engine::config::Color;

use crate::terminal;

/// Appends a line to a text. Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {{ let _ = writeln!($out, $($arg)*); }};
}

/// Rule names beyond this width are not aligned.
const MAX_NAME_WIDTH: usize = 40;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const DIM: &str = "2";

/// Renders answers with or without colours. Waits count from `now`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renderer {
    color: Color,
    now: Time,
}

impl Renderer {
    /// A renderer for standard output at this moment.
    pub(crate) fn for_stdout() -> Renderer {
        Renderer { color: terminal::color_on_stdout(), now: Clock::System.now() }
    }

    /// A decision on one line, and the rule's further words below it.
    pub(crate) fn decision(self, decision: &Decision<'_>) -> String {
        let mut out = String::new();
        let verdict = self.verdict(decision.allowed);
        let mut parts = Vec::new();
        let action = match &*decision.action {
            "" | "allow" | "deny" => String::new(),
            action => format!(" ({action})"),
        };
        if let Some(rule) = &decision.rule {
            parts.push(format!("by {rule}{action}"));
        }
        parts.extend(left(decision.remaining, decision.limit));
        parts.extend(wait(decision.retry_after, decision.never));
        if let (true, Some(most), true) = (decision.allowed, decision.limit, decision.reset_after > Millis(0)) {
            // The line names this limit's reset only. Other limits of the request may take longer.
            parts.push(format!("{most} again in {}s", decision.reset_after));
        }
        parts.extend(delay(decision.delay));
        match (decision.matched, decision.allowed) {
            (false, _) if parts.is_empty() => parts.push("no rule matches".to_owned()),
            (true, true) if parts.is_empty() => parts.push("only shadow rules match".to_owned()),
            _ => {}
        }
        line!(out, "{verdict}{}", parts.join(", "));
        if let Some(message) = &decision.message {
            let code = decision.code.map_or(String::new(), |code| format!(" (code {code})"));
            line!(out, "         {message}{code}");
        }
        for exceeded in &decision.exceeded {
            let rule = exceeded.rule.as_ref().map_or(String::new(), |rule| format!(" of {rule}"));
            let wait = wait(exceeded.retry_after, exceeded.never).map_or(String::new(), |wait| format!(", {wait}"));
            let limit = plain(&exceeded.limit);
            match exceeded.memory_full {
                true => line!(out, "         memory is full: no counter for {limit}{rule}{wait}"),
                false => line!(out, "         exceeded {limit}{rule}{wait}"),
            }
        }
        if !decision.shadow.is_empty() {
            line!(out, "         would be denied by {} (shadow)", plain(&decision.shadow.join(", ")));
        }
        if let Some(until) = decision.banned_until {
            line!(out, "         banned until {}", self.instant(until));
        }
        if decision.degraded {
            line!(out, "         {}", self.paint("the store is away or behind: this is a stopgap", YELLOW));
        }
        out
    }

    /// An explanation: the decision, then how every rule sees the request.
    pub(crate) fn explanation(self, explanation: &Explanation<'_>) -> String {
        let mut out = String::new();
        if let Some(until) = explanation.paused_until {
            line!(out, "{}   until {}: no rule denies", self.paint("paused", YELLOW), self.instant(until));
        }
        // If the server has rules of another system only, their verdict comes first.
        if !explanation.rules.is_empty() || explanation.fronts.is_empty() {
            out.push_str(&self.decision(&explanation.decision));
        }
        if let Some(ban) = &explanation.ban {
            let told = format!("A ban by hand comes before all rules: {}", self.manual_ban(ban, None));
            line!(out, "\n{}", self.paint(&told, RED));
        }
        let banning = explanation.rules.iter().filter_map(|rule| Some((rule, rule.banned_until?)));
        for (number, (rule, until)) in banning.enumerate() {
            let everywhere = rule.ban_scope.as_deref() == Some("subject");
            let scope = if everywhere { "everywhere" } else { "where it matches" };
            let told = format!("Banned by the rule {}, {scope}, until {}", plain(&rule.rule), self.instant(until));
            line!(out, "{}{}", if number == 0 { "\n" } else { "" }, self.paint(&told, RED));
        }
        if explanation.rules.is_empty() && explanation.fronts.is_empty() {
            line!(out, "\nThere are no rules.");
            return out;
        }
        if explanation.decision.degraded {
            let told = "While the store is away each rule's on_failure decides. Under \"local\" limits are this node's \
                        share, and counts are its own:";
            line!(out, "\n{}", self.paint(told, YELLOW));
        } else if !explanation.rules.is_empty() {
            line!(out, "");
        }
        self.rules(&mut out, &explanation.rules);
        for front in &explanation.fronts {
            line!(out, "{}{}", if out.is_empty() { "" } else { "\n" }, self.front(front));
            self.rules(&mut out, &front.rules);
        }
        out
    }

    /// What the endpoints of another system would answer, in one line.
    pub(crate) fn front(self, FrontReport { name, allowed, rule, rules }: &FrontReport<'_>) -> String {
        let verdict = self.verdict(*allowed);
        let told = match rule {
            Some(rule) => format!("by {}", plain(rule)),
            None if !allowed => "by a ban by hand".to_owned(),
            None if rules.iter().any(|rule| rule.matched) => "no limit is exceeded".to_owned(),
            None => "no rule matches".to_owned(),
        };
        format!("{verdict}over {}'s endpoints: {told}", plain(name))
    }

    /// How every rule sees the request.
    fn rules(self, out: &mut String, rules: &[RuleReport<'_>]) {
        let width = rules.iter().map(|rule| rule.rule.chars().count()).max().unwrap_or(0).min(MAX_NAME_WIDTH);
        for (number, rule) in (1..).zip(rules) {
            line!(out, "{number:>3}  {:<width$}  {}", plain(&rule.rule), self.rule(rule));
            for limit in &rule.limits {
                line!(out, "     {:<width$}  {}", "", limit_line(limit));
            }
        }
    }

    /// Whether a rule matches, and the reason if it does not.
    fn rule(self, rule: &RuleReport<'_>) -> String {
        if let Some(failed) = &rule.failed {
            let found = failed.found.as_ref().map_or("is not there".to_owned(), |found| format!("is {found:?}"));
            let told = format!("no: {} {found}, must be {}", plain(&failed.field), plain(&failed.expected));
            return self.paint(&told, DIM);
        }
        let mut says = match (rule.reached, &*rule.action) {
            (false, _) => "matches, but something above it has decided".to_owned(),
            (true, "allow") => "matches: allow".to_owned(),
            (true, action) if rule.limits.is_empty() => format!("matches: {action}"),
            (true, _) => "matches".to_owned(),
        };
        if rule.shadow {
            says.push_str(", as a shadow");
        }
        if let Some(on_failure) = rule.on_failure.as_ref().filter(|_| !rule.limits.is_empty()) {
            let _ = write!(says, ", on_failure = {on_failure:?}");
        }
        says
    }

    /// The bans in force, one a line.
    pub(crate) fn bans(self, bans: &Bans<'_>) -> String {
        let mut out = String::new();
        for ban in &bans.bans {
            line!(out, "{:<16}  {}", plain(&ban.id), self.manual_ban(ban, None));
        }
        for ban in &bans.rule_bans {
            let fields = ban.subject.0.iter().map(|(name, value)| format!("{}={}", name.0, plain(&value.0)));
            let subject = fields.collect::<Vec<_>>().join(" ");
            let (id, rule, until) = (plain(&ban.id), plain(&ban.rule), self.instant(ban.until));
            let scope = if ban.scope == "subject" { ", everywhere" } else { "" };
            line!(out, "{id:<16}  {subject}  by rule {rule}{scope}, until {until}");
        }
        if out.is_empty() {
            out.push_str("no bans are in force\n");
        }
        out
    }

    /// A ban that was just imposed for `length`.
    pub(crate) fn new_ban(self, NewBan { ban, warning, .. }: &NewBan<'_>, length: Span) -> String {
        let mut out = String::new();
        line!(out, "banned   {}, as {}", self.manual_ban(ban, Some(length)), plain(&ban.id));
        if let Some(warning) = warning {
            line!(out, "         {}", self.paint(&plain(warning), YELLOW));
        }
        out
    }

    /// A ban that was just imposed is shown with its `length`, because the server's clock may differ from this
    /// machine's.
    fn manual_ban(self, ban: &ManualBan<'_>, length: Option<Span>) -> String {
        let reason = if ban.reason.is_empty() { String::new() } else { format!("  {}", plain(&ban.reason)) };
        let (field, value) = (plain(&ban.field), plain(&ban.value));
        let lasts = match length {
            Some(length) => format!(" for {}, until {}", instant::roughly(length), instant::instant(ban.until)),
            None => format!(", until {}", self.instant(ban.until)),
        };
        format!("{field}={value}  by hand{lasts}{reason}")
    }

    /// Whether the rules are paused.
    pub(crate) fn pause(self, pause: Pause) -> String {
        match pause.until {
            Some(until) => {
                let paused = self.paint("paused", YELLOW);
                format!("{paused}   no rule denies until {}; bans by hand still do\n", self.instant(until))
            }
            None => format!("{}  the rules of this server are not paused\n", self.paint("running", GREEN)),
        }
    }

    /// The verdict, padded with blanks to the width of the longer one.
    fn verdict(self, allowed: bool) -> String {
        match allowed {
            true => format!("{}  ", self.paint("allowed", GREEN)),
            false => format!("{}   ", self.paint("denied", RED)),
        }
    }

    fn instant(self, instant: Millis) -> String {
        instant::render(instant, self.now)
    }

    fn paint(self, text: &str, code: &str) -> String {
        match self.color {
            Color::Always => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Color::Never => text.to_owned(),
        }
    }
}

/// A limit and its state. A `!` marks a limit that denies.
fn limit_line(limit: &LimitReport<'_>) -> String {
    let mark = if limit.allowed { " " } else { "!" };
    let mut parts = Vec::new();
    parts.extend(left(limit.remaining, limit.most));
    parts.extend(wait(limit.retry_after, limit.never));
    parts.extend(delay(limit.delay));
    let colon = if parts.is_empty() { "" } else { ": " };
    format!("{mark} {}{colon}{}", plain(&limit.limit), parts.join(", "))
}

fn left(remaining: Option<u64>, most: Option<u64>) -> Option<String> {
    let (left, most) = (remaining?, most?);
    Some(format!("{left} of {most} left"))
}

fn wait(retry_after: Option<Millis>, never: bool) -> Option<String> {
    match retry_after {
        Some(wait) => Some(format!("come back in {wait}s")),
        None if never => Some("no wait helps".to_owned()),
        None => None,
    }
}

fn delay(delay: Millis) -> Option<String> {
    (delay > Millis(0)).then(|| format!("to be held for {delay}s"))
}

/// A text on one line: control characters are replaced.
fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use flowgate_api::ExceededLimit;

    use super::*;

    const PLAIN: Renderer = Renderer { color: Color::Never, now: Time::from_secs(1_700_000_000) };

    fn allowed(rule: &str) -> Decision<'_> {
        Decision {
            allowed: true,
            action: "allow".into(),
            rule: Some(rule.into()),
            matched: true,
            ..Decision::default()
        }
    }

    fn denied(rule: &str) -> Decision<'_> {
        Decision { allowed: false, action: "deny".into(), ..allowed(rule) }
    }

    fn rule<'a>(name: &'a str, on_failure: Option<&'a str>, limits: Vec<LimitReport<'a>>) -> RuleReport<'a> {
        RuleReport {
            rule: name.into(),
            matched: true,
            reached: true,
            action: "deny".into(),
            limits,
            on_failure: on_failure.map(Into::into),
            ..RuleReport::default()
        }
    }

    #[test]
    fn allowed_request_is_one_line() {
        let taken = Decision { limit: Some(5), remaining: Some(4), reset_after: Millis(60_000), ..allowed("reply") };
        assert_eq!(PLAIN.decision(&taken), "allowed  by reply, 4 of 5 left, 5 again in 60s\n");
        let held = Decision { delay: Millis(250), ..allowed("p") };
        assert_eq!(PLAIN.decision(&held), "allowed  by p, to be held for 0.25s\n");
        let unmatched = Decision { rule: None, matched: false, ..allowed("") };
        assert_eq!(PLAIN.decision(&unmatched), "allowed  no rule matches\n");
        let shadowed = Decision { rule: None, shadow: vec!["new".into()], ..allowed("") };
        let told = "allowed  only shadow rules match\n         would be denied by new (shadow)\n";
        assert_eq!(PLAIN.decision(&shadowed), told);
    }

    #[test]
    fn denial_says_why_and_when_to_come_back() {
        let exceeded = ExceededLimit {
            rule: Some("reply".into()),
            limit: "sliding 5/60s".into(),
            retry_after: Some(Millis(12_250)),
            ..ExceededLimit::default()
        };
        let full = Decision {
            action: "captcha".into(),
            code: Some(201),
            message: Some("You reply too fast.".into()),
            limit: Some(5),
            remaining: Some(0),
            retry_after: Some(Millis(12_250)),
            reset_after: Millis(59_500),
            exceeded: vec![exceeded],
            shadow: vec!["new".into()],
            banned_until: Some(Millis(1_700_000_060_000)),
            degraded: true,
            ..denied("reply")
        };
        assert_eq!(
            PLAIN.decision(&full),
            "denied   by reply (captcha), 0 of 5 left, come back in 12.25s\n         \
             You reply too fast. (code 201)\n         \
             exceeded sliding 5/60s of reply, come back in 12.25s\n         \
             would be denied by new (shadow)\n         \
             banned until 2023-11-14 22:14:20Z (in 1m)\n         \
             the store is away or behind: this is a stopgap\n",
        );
        let no_room = ExceededLimit { memory_full: true, limit: "5/60s".into(), ..ExceededLimit::default() };
        let refused = Decision { exceeded: vec![no_room], ..denied("r") };
        assert_eq!(PLAIN.decision(&refused), "denied   by r\n         memory is full: no counter for 5/60s\n");
        let never = Decision { limit: Some(5), remaining: Some(5), never: true, ..denied("r") };
        assert_eq!(PLAIN.decision(&never), "denied   by r, 5 of 5 left, no wait helps\n");
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        let painted = Renderer { color: Color::Always, ..PLAIN }.decision(&denied("r"));
        assert!(painted.starts_with("\u{1b}[31mdenied\u{1b}[0m"));
        assert!(!PLAIN.decision(&denied("r")).contains('\u{1b}'));
    }

    #[test]
    fn explanation_names_the_ban_by_hand() {
        let ban = ManualBan {
            id: "h-3f0k2m9qav-3".into(),
            field: "user".into(),
            value: "7".into(),
            until: Millis(1_700_003_600_000),
            reason: "spam\n".into(),
            author: None,
        };
        let rules = vec![RuleReport { reached: false, ..rule("all", None, Vec::new()) }];
        let decision = Decision { rule: None, ..denied("") };
        assert_eq!(
            PLAIN.explanation(&Explanation { decision, ban: Some(ban), rules, ..Explanation::default() }),
            "denied   \n\nA ban by hand comes before all rules: user=7  by hand, until 2023-11-14 23:13:20Z (in 1h)  \
             spam\u{fffd}\n\n  1  all  matches, but something above it has decided\n"
        );
    }

    #[test]
    fn explanation_without_the_store_says_whose_counts_it_shows() {
        let two = LimitReport {
            limit: "sliding 2/1h".into(),
            allowed: true,
            most: Some(2),
            remaining: Some(1),
            ..LimitReport::default()
        };
        let nine = LimitReport {
            limit: "sliding 9/1h".into(),
            remaining: Some(0),
            retry_after: Some(Millis(1000)),
            ..LimitReport::default()
        };
        let rules = vec![
            rule("five", Some("local"), vec![two]),
            rule("shut", Some("deny"), vec![nine]),
            rule("none", Some("local"), Vec::new()),
        ];
        let decision = Decision { degraded: true, retry_after: Some(Millis(1000)), ..denied("shut") };
        assert_eq!(
            PLAIN.explanation(&Explanation { decision, rules, ..Explanation::default() }),
            "denied   by shut, come back in 1s\n         the store is away or behind: this is a stopgap\n\n\
             While the store is away each rule's on_failure decides. Under \"local\" limits are this node's share, and \
             counts are its own:\n  \
             1  five  matches, on_failure = \"local\"\n             sliding 2/1h: 1 of 2 left\n  \
             2  shut  matches, on_failure = \"deny\"\n           ! sliding 9/1h: come back in 1s\n  \
             3  none  matches: deny\n"
        );
    }
}
