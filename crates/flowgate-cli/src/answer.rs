//! A server's answers, told to people.
//!
//! Rule       One line says what matters; colours repeat it and never replace it. What the server leaves out is
//!            left out here.

mod instant;

use std::fmt::Write;

use flowgate::{Clock, Time};
use flowgate_engine::config::Color;
use serde_json::Value;

use crate::terminal;

/// Appends a line to a text. Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {{ let _ = writeln!($out, $($arg)*); }};
}

/// How answers are told: to whom, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Telling {
    color: Color,
    now: Time,
}

impl Telling {
    /// To whoever reads standard output, now.
    pub(crate) fn to_stdout() -> Telling {
        Telling { color: terminal::color_on_stdout(), now: Clock::System.now() }
    }

    /// A decision in one line, and what else the rule says.
    pub(crate) fn decision(self, decision: &Value) -> String {
        let mut out = String::new();
        let allowed = decision["allowed"] == true;
        let verdict = if allowed { self.paint("allowed", GREEN) } else { self.paint("denied", RED) };
        let pad = if allowed { "  " } else { "   " };
        let rule = decision["rule"].as_str().map_or(String::new(), |rule| format!("by {rule}"));
        let action = match decision["action"].as_str() {
            Some(action) if !allowed && action != "deny" => format!(" ({action})"),
            _ => String::new(),
        };
        let parts =
            [format!("{rule}{action}"), left(decision, "limit"), wait(decision), reset(decision), delay(decision)];
        let told: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let told =
            if told.is_empty() && decision["matched"] == false { vec!["no rule matches".to_owned()] } else { told };
        line!(out, "{verdict}{pad}{}", told.join(", "));
        if let Some(message) = decision["message"].as_str() {
            let code = decision["code"].as_i64().map_or(String::new(), |code| format!(" (code {code})"));
            line!(out, "         {message}{code}");
        }
        for exceeded in items(decision, "exceeded") {
            let rule = exceeded["rule"].as_str().map_or(String::new(), |rule| format!(" of {rule}"));
            line!(out, "         exceeded {}{rule}{}", plain(&exceeded["limit"]), comma(wait(exceeded)));
        }
        let shadow: Vec<String> = items(decision, "shadow").map(plain).collect();
        if !shadow.is_empty() {
            line!(out, "         would be denied by {} (shadow)", shadow.join(", "));
        }
        if decision["banned_until"].is_number() {
            line!(out, "         banned until {}", self.instant(&decision["banned_until"]));
        }
        if decision["degraded"] == true {
            line!(out, "         {}", self.paint("the shared store is away: this is a stopgap", YELLOW));
        }
        out
    }

    /// An explanation: the decision, then every rule with what it makes of the request.
    pub(crate) fn explanation(self, explanation: &Value) -> String {
        let mut out = self.decision(&explanation["decision"]);
        if explanation["ban"].is_object() {
            let ban = self.manual_ban(&explanation["ban"]);
            line!(out, "\n{}", self.paint(&format!("A ban by hand comes before all rules: {ban}"), RED));
        }
        let rules: Vec<&Value> = items(explanation, "rules").collect();
        if rules.is_empty() {
            line!(out, "\nThere are no rules.");
            return out;
        }
        let width = rules.iter().map(|rule| plain(&rule["rule"]).chars().count()).max().unwrap_or(0).min(40);
        line!(out, "");
        if explanation["decision"]["degraded"] == true {
            let told = "While the store is away each rule's on_failure decides. Under \"local\" limits are this node's \
                        share, and counts are its own:";
            line!(out, "{}", self.paint(told, YELLOW));
        }
        for (number, rule) in (1..).zip(rules) {
            let name = plain(&rule["rule"]);
            let says = self.says(rule);
            line!(out, "{number:>3}  {name:<width$}  {says}");
            for limit in items(rule, "limits") {
                let mark = if limit["allowed"] == true { " " } else { "!" };
                let told = [left(limit, "most"), wait(limit), delay(limit)];
                let told: Vec<String> = told.into_iter().filter(|part| !part.is_empty()).collect();
                let told = if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) };
                line!(out, "     {:<width$}  {mark} {}{told}", "", plain(&limit["limit"]));
            }
        }
        out
    }

    /// Whether a rule matches, and if not, why.
    fn says(self, rule: &Value) -> String {
        let failed = &rule["failed"];
        if failed.is_object() {
            let found = failed["found"].as_str().map_or("is not there".to_owned(), |found| format!("is {found:?}"));
            let told = format!("no: {} {found}, must be {}", plain(&failed["field"]), plain(&failed["expected"]));
            return self.paint(&told, DIM);
        }
        let mut says = match (rule["reached"] == true, rule["action"].as_str()) {
            (false, _) => "matches, but something above it has decided".to_owned(),
            (true, Some("allow")) => "matches: allow".to_owned(),
            (true, action) if items(rule, "limits").next().is_none() => {
                format!("matches: {}", action.unwrap_or("deny"))
            }
            (true, _) => "matches".to_owned(),
        };
        if rule["shadow"] == true {
            says.push_str(", as a shadow");
        }
        if rule["on_failure"].is_string() && items(rule, "limits").next().is_some() {
            let _ = write!(says, ", on_failure = {}", rule["on_failure"]);
        }
        if rule["banned_until"].is_number() {
            let _ = write!(says, ", and bans the subject until {}", self.instant(&rule["banned_until"]));
        }
        says
    }

    /// The bans in force, one a line.
    pub(crate) fn bans(self, bans: &Value) -> String {
        let mut out = String::new();
        for ban in items(bans, "bans") {
            line!(out, "{:<16}  {}", plain(&ban["id"]), self.manual_ban(ban));
        }
        for ban in items(bans, "rule_bans") {
            let subject = ban["subject"].as_object().into_iter().flatten();
            let subject: Vec<String> = subject.map(|(name, value)| format!("{name}={}", plain(value))).collect();
            let (id, rule) = (plain(&ban["id"]), plain(&ban["rule"]));
            line!(out, "{id:<16}  {}  by rule {rule}, until {}", subject.join(" "), self.instant(&ban["until"]));
        }
        if out.is_empty() {
            out.push_str("no bans are in force\n");
        }
        out
    }

    /// A ban that was just imposed.
    pub(crate) fn imposed(self, ban: &Value) -> String {
        let mut out = String::new();
        line!(out, "banned   {}, as {}", self.manual_ban(ban), plain(&ban["id"]));
        if ban["warning"].is_string() {
            line!(out, "         {}", self.paint(&plain(&ban["warning"]), YELLOW));
        }
        out
    }

    fn manual_ban(self, ban: &Value) -> String {
        let reason = ban["reason"].as_str().filter(|reason| !reason.is_empty());
        let reason = reason.map_or(String::new(), |_| format!("  {}", plain(&ban["reason"])));
        let (field, value) = (plain(&ban["field"]), plain(&ban["value"]));
        format!("{field}={value}  by hand, until {}{reason}", self.instant(&ban["until"]))
    }

    fn instant(self, seconds: &Value) -> String {
        instant::tell(seconds, self.now)
    }

    fn paint(self, text: &str, code: &str) -> String {
        match self.color {
            Color::Always => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Color::Never => text.to_owned(),
        }
    }
}

fn left(of: &Value, most: &str) -> String {
    match (&of["remaining"], &of[most]) {
        (Value::Number(left), Value::Number(most)) => format!("{left} of {most} left"),
        _ => String::new(),
    }
}

fn wait(of: &Value) -> String {
    match &of["retry_after"] {
        Value::Number(seconds) => format!("come back in {seconds}s"),
        _ if of["never"] == true => "no wait helps".to_owned(),
        _ => String::new(),
    }
}

fn reset(of: &Value) -> String {
    match &of["reset_after"] {
        Value::Number(seconds) if of["allowed"] == true && seconds.as_f64() > Some(0.0) => {
            format!("all back in {seconds}s")
        }
        _ => String::new(),
    }
}

fn delay(of: &Value) -> String {
    match &of["delay"] {
        Value::Number(seconds) if seconds.as_f64() > Some(0.0) => format!("to be held for {seconds}s"),
        _ => String::new(),
    }
}

fn comma(text: String) -> String {
    if text.is_empty() { text } else { format!(", {text}") }
}

fn items<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of[name].as_array().into_iter().flatten()
}

/// A text without its quotes, on one line; anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.replace(char::is_control, "\u{fffd}"))
}

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const DIM: &str = "2";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Telling = Telling { color: Color::Never, now: Time::from_secs(1_700_000_000) };

    #[test]
    fn decisions_read_as_sentences() {
        let check = |value: Value, expected: &str| assert_eq!(PLAIN.decision(&value), expected);
        check(
            json!({"allowed": true, "action": "allow", "rule": "reply", "matched": true, "limit": 5, "remaining": 4,
                   "retry_after": null, "reset_after": 60, "delay": 0}),
            "allowed  by reply, 4 of 5 left, all back in 60s\n",
        );
        check(
            json!({"allowed": false, "action": "captcha", "rule": "reply", "matched": true, "code": 201,
                   "message": "You reply too fast.", "limit": 5, "remaining": 0, "retry_after": 12.25,
                   "reset_after": 59.5, "delay": 0, "banned_until": 1_700_000_060, "degraded": true,
                   "exceeded": [{"rule": "reply", "limit": "sliding 5/60s", "retry_after": 12.25}], "shadow": ["new"]}),
            "denied   by reply (captcha), 0 of 5 left, come back in 12.25s\n         \
             You reply too fast. (code 201)\n         \
             exceeded sliding 5/60s of reply, come back in 12.25s\n         \
             would be denied by new (shadow)\n         \
             banned until 2023-11-14 22:14:20Z (in 1m)\n         \
             the shared store is away: this is a stopgap\n",
        );
        check(json!({"allowed": true, "rule": null, "matched": false}), "allowed  no rule matches\n");
        check(
            json!({"allowed": false, "action": "deny", "rule": "r", "limit": 5, "remaining": 5, "retry_after": null, "never": true}),
            "denied   by r, 5 of 5 left, no wait helps\n",
        );
        check(json!({"allowed": true, "rule": "p", "delay": 0.25}), "allowed  by p, to be held for 0.25s\n");
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        let denied = json!({"allowed": false, "rule": "r"});
        assert!(Telling { color: Color::Always, ..PLAIN }.decision(&denied).starts_with("\u{1b}[31mdenied\u{1b}[0m"));
        assert!(!PLAIN.decision(&denied).contains('\u{1b}'));
    }

    #[test]
    fn an_explanation_names_the_ban_by_hand() {
        let ban =
            json!({"id": "h-3f0k2m9qav-3", "field": "user", "value": "7", "until": 1_700_003_600, "reason": "spam\n"});
        let told = PLAIN.explanation(&json!({
            "decision": {"allowed": false, "rule": null, "matched": true}, "ban": ban,
            "rules": [{"rule": "all", "failed": null, "reached": false, "action": "deny", "limits": []}]
        }));
        assert_eq!(
            told,
            "denied   \n\nA ban by hand comes before all rules: user=7  by hand, until 2023-11-14 23:13:20Z (in 1h)  \
             spam\u{fffd}\n\n  1  all  matches, but something above it has decided\n"
        );
    }

    #[test]
    fn an_explanation_without_the_store_says_whose_counts_it_shows() {
        let told = PLAIN.explanation(&json!({
            "decision": {"allowed": false, "rule": "shut", "degraded": true, "retry_after": 1}, "ban": null,
            "rules": [{"rule": "five", "failed": null, "reached": true, "action": "deny", "on_failure": "local",
                       "limits": [{"limit": "sliding 2/1h", "allowed": true, "most": 2, "remaining": 1}]},
                      {"rule": "shut", "failed": null, "reached": true, "action": "deny", "on_failure": "deny",
                       "limits": [{"limit": "sliding 9/1h", "allowed": false, "most": null, "remaining": 0,
                                   "retry_after": 1}]},
                      {"rule": "none", "failed": null, "reached": true, "action": "deny", "on_failure": "local",
                       "limits": []}]
        }));
        assert_eq!(
            told,
            "denied   by shut, come back in 1s\n         the shared store is away: this is a stopgap\n\n\
             While the store is away each rule's on_failure decides. Under \"local\" limits are this node's share, and \
             counts are its own:\n  \
             1  five  matches, on_failure = \"local\"\n             sliding 2/1h: 1 of 2 left\n  \
             2  shut  matches, on_failure = \"deny\"\n           ! sliding 9/1h: come back in 1s\n  \
             3  none  matches: deny\n"
        );
    }
}
