//! Every form of a condition, old and new.

use flowgate_koala::{KoalaAsk, KoalaRules};

use super::*;

/// Whether a rule with this condition matches each value.
#[track_caller]
fn matches(condition: &str, yes: &[&str], no: &[&str]) {
    let engine = engine();
    let rule = format!("rule : [direct] [{condition}] [time=1; count=0;] [result=2; return=1]");
    let rules = KoalaRules::new(file(&rule), engine.memory(), None).unwrap();
    let matched = |request: &Request<'_>| rules.decide(&engine, KoalaAsk::Browse, request, time("0s")).matched();
    for (values, expected) in [(yes, true), (no, false)] {
        for value in values {
            assert_eq!(matched(&Request::new().field("k", value)), expected, "{condition}: {value:?}");
        }
    }
    assert!(!matched(&Request::new()), "{condition}: a field that is missing matches nothing");
    assert!(!matched(&Request::new().field("k", "")), "{condition}: an empty field matches nothing");
    assert!(!matched(&Request::new().field("K", yes[0])), "{condition}: another field");
}

#[test]
fn conditions_match_values() {
    matches("k=v", &["v"], &["V", "w", "v "]);
    matches("k = v", &["v"], &["w"]);
    matches("k=a,b", &["a", "b"], &["c", "a,b"]);
    matches("k= a , b ,", &["a", "b"], &["c"]);
    matches("k=a,b{~}", &["a", "b"], &["c", "b{~}"]);
    matches("k=a,b{*}", &["a", "b"], &["c", "b{*}"]);
    matches("k=a{~}", &["a"], &["a{~}"]);
    matches("k!=v", &["w", "V"], &["v"]);
    matches("k != v", &["w"], &["v"]);
    matches("k!=a,b", &["c"], &["a", "b"]);
    matches("k=+", &["x", "+", "0"], &[]);
    matches("k=评论", &["评论"], &["comment"]);
    matches("k=add-comment", &["add-comment"], &["add", "comment"]);
    matches("k=a@b.cn", &["a@b.cn"], &["a"]);
    matches("k=/api/v1", &["/api/v1"], &["/api"]);
    matches("k=-5", &["-5"], &["5"]);
    matches("k=a=b", &["a=b"], &["a"]);
}

#[test]
fn conditions_compare_numbers() {
    matches("k>5", &["6", "5.5", "99999999999999999999"], &["5", "-6", "x", "1e9"]);
    matches("k > 5", &["6"], &["5"]);
    matches("k<5", &["4", "-100"], &["5", "x"]);
    matches("k!>5", &["5", "4", "x"], &["6"]);
    matches("k!<5", &["5", "x"], &["4"]);
    matches("k=1-100", &["1", "100", "50"], &["0", "101", "x", "1-100"]);
    matches("k=1 - 100", &["1", "100"], &["0"]);
    matches("k=1-2147483647", &["1", "2147483647"], &["0", "2147483648"]);
    matches("k!=1-100", &["0", "101", "x"], &["1", "100"]);
    matches("k=1-5,10-15,99", &["1", "5", "12", "99"], &["6", "98"]);
    matches("k!=1-5,10-15,99", &["6", "98"], &["1", "5", "12", "99"]);
    matches("k=-5--1", &["-3"], &["3", "-6"]);
}

#[test]
fn conditions_match_addresses() {
    matches("k=192.168.0.*", &["192.168.0.0", "192.168.0.255"], &["192.168.1.0", "x", "192.168.0"]);
    matches("k=192.168.*.*", &["192.168.0.0", "192.168.255.255"], &["192.169.0.0"]);
    matches("k=192.168.0.1-192.168.0.255", &["192.168.0.1", "192.168.0.255"], &["192.168.0.0", "192.168.1.1"]);
    matches("k=192.168.0.*-192.168.5.*", &["192.168.0.0", "192.168.5.255"], &["192.168.6.0"]);
    matches("k=192.168.0.1/24", &["192.168.0.0", "192.168.0.255"], &["192.168.1.0"]);
    matches("k=10.1.1.1", &["10.1.1.1", "::ffff:10.1.1.1"], &["10.1.1.2"]);
    let list = "192.168.0.1-192.168.0.255,10.0.24.*,202.106.34.21/24";
    let (inside, outside) = (["192.168.0.7", "10.0.24.9", "202.106.34.200"], ["10.0.25.1", "202.106.35.1", "::1"]);
    matches(&format!("k={list}"), &inside, &outside);
    matches(&format!("k!={list}"), &outside, &inside);
    matches("k!=192.168.0.*", &["192.168.1.0", "2001:db8::1", "x"], &["192.168.0.9"]);
    matches("k=2001:db8::/32", &["2001:db8::1"], &["2001:db9::1", "32.1.13.184"]);
    matches("k=2001:db8::1-2001:db8::9", &["2001:db8::5"], &["2001:db8::a"]);
}

#[test]
fn conditions_look_up_dicts() {
    for condition in ["k @ vip", "k@vip", "k-IN-vip"] {
        matches(condition, &["7", "42", "10.1.2.3"], &["8", "11.0.0.1", "vip"]);
    }
    for condition in ["k !@ vip", "k!@vip", "k ! @ vip", "k-NOTIN-vip"] {
        matches(condition, &["8", "11.0.0.1", "vip"], &["7", "42", "10.1.2.3"]);
    }
}

#[test]
fn several_conditions_must_all_hold() {
    matches("k>5; k<10", &["6", "9"], &["5", "10"]);
    matches("k=1-100; k!=50; k!@vip;", &["1", "51"], &["50", "42", "101"]);
    check(
        "rule:[direct] [act=ask;is_new=1;qid=+][time=1;count=0][result=3;return=110;]",
        "browse act=ask is_new=1 qid=9 -> 110
         browse act=ask qid=9 -> none
         browse act=ask is_new=0 qid=9 -> none",
    );
}

#[test]
fn the_file_may_be_written_in_many_ways() {
    let text = "\u{feff}# a comment\r\n[RULES]   # any case\r\n\r\n  RULE:[count]   [ act = ask ; qid=+ ;; ]\t[time = 60;count=1]  \
                [result=2;return=5;]  # why\r\n[Result]\r\n2:{}\r\n [dicts] \r\n";
    let loaded = KoalaFile::load(Input::Text { name: "x", base: Path::new(""), text }, "UTC").unwrap();
    assert_eq!((loaded.file.number_of_rules(), loaded.file.dicts()), (1, 0));
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let rule = &loaded.file.policy().rules[0];
    assert_eq!((rule.name.as_str(), rule.by.as_slice()), ("koala-5", &["act".to_owned(), "qid".to_owned()][..]));
}

#[test]
fn dicts_lie_beside_the_rule_file_or_above_it() {
    let directory = tempfile::tempdir().unwrap();
    let conf = directory.path().join("conf");
    std::fs::create_dir(&conf).unwrap();
    std::fs::write(conf.join("a.dat"), "1\n").unwrap();
    let path = conf.join("koala_rule.conf");
    for written in ["a.dat", "conf/a.dat", conf.join("a.dat").to_str().unwrap()] {
        std::fs::write(&path, format!("[dicts]\na : {written}\n")).unwrap();
        let loaded = KoalaFile::load(Input::File(&path), "UTC").unwrap();
        assert_eq!(loaded.file.policy().lists["a"].len(), 1, "{written}");
        assert!(loaded.origins.iter().any(|origin| origin.path == conf.join("a.dat")), "it is watched");
    }
}
