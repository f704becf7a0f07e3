//! The documented example.

use super::*;

#[test]
fn the_example_becomes_rules_and_lists() {
    let config = config(DOCUMENTED_RULES, &[]);
    assert!(config.policy.lists["vip"].contains("42"));
    assert!(config.policy.lists["blocked"].contains("192.0.2.7"));
    let [blocked, reply, api] = config.policy.rules.as_slice() else { panic!("not three rules") };
    assert_eq!((blocked.name.as_str(), blocked.title.as_deref()), ("blocked", Some("Blocked addresses")));
    assert_eq!(blocked.action, Action::Deny);
    assert!(matches!(&blocked.limits, Limits::None));
    assert!(matches!(&blocked.when[0].matcher, Matcher::List(name) if **name == *"blocked"));

    assert_eq!(reply.by, ["user"]);
    let fields: Vec<_> = reply.when.iter().map(|condition| condition.field.as_str()).collect();
    assert_eq!(fields, ["act", "user"], "conditions keep the order in which they are written");
    let Limits::Fixed(limits) = &reply.limits else { panic!("no limits") };
    let limits: Vec<_> = limits.iter().map(ToString::to_string).collect();
    assert_eq!(limits, ["sliding 5/60s", "fixed 100/1d tz=Asia/Shanghai", "bucket 30/60s burst=15"]);
    assert_eq!((reply.code, reply.message.as_deref()), (Some(201), Some("You reply too fast.")));
    assert_eq!(reply.on_failure, Some(OnFailure::Local));
    let ban = reply.ban.as_ref().unwrap();
    assert_eq!((ban.after, ban.lengths.len(), ban.forget.as_secs_ceil()), (3, 3, 86_400));

    let Limits::ByField { field, cases, default } = &api.limits else { panic!("not by a field") };
    assert_eq!((field.as_str(), cases.len(), default.as_ref().unwrap().len()), ("plan", 2, 1));
    assert_eq!(api.action, Action::Other("captcha".into()));
}

#[test]
fn the_example_gives_no_warnings() {
    let loaded = from_text(DOCUMENTED_RULES, &[]).unwrap();
    // Its lists and certificates are complete; `vip` is there to be looked at.
    let messages: Vec<_> = loaded.warnings.entries().map(|entry| entry.message.text.clone()).collect();
    assert_eq!(messages, ["no rule uses the list \"vip\""]);
}
