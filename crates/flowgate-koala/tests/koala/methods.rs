//! Every method, and every endpoint on each.

use super::*;

#[test]
fn direct_decides_where_it_stands() {
    check(
        "rule : [direct] [uid @ vip] [time=1; count=0;] [result=1; return=101]
         rule : [direct] [uid=13]    [time=1; count=0;] [result=2; return=103]
         rule : [count]  [uid=+]     [time=60; count=1] [result=2; return=104]
         rule : [direct] [act=ask]   [] [result=3; return=105]",
        "browse uid=7 act=ask -> 101
         browse uid=13 act=ask -> 103
         browse uid=9 act=ask -> 105
         browse uid=9 -> pass
         update uid=9
         browse uid=9 act=ask -> 104
         browse act=ask -> 105
         browse act=x -> none
         value 101 uid=7 -> 0",
    );
}

#[test]
fn count_opens_a_window_with_the_first() {
    check(
        "rule : [count] [act=ask; qid=+;] [time=60; count=2;] [result=2; return=111]",
        "at 0s browse act=ask qid=1 -> pass
         at 0s update act=ask qid=1
         at 50s update act=ask qid=1
               browse act=ask qid=1 -> 111
               browse act=ask qid=2 -> pass
               browse act=tell qid=1 -> none
               value 111 act=ask qid=1 -> 2
         at 59.999999999s browse act=ask qid=1 -> 111
         at 60s browse act=ask qid=1 -> pass
               value 111 act=ask qid=1 -> 0",
    );
}

#[test]
fn an_update_counts_beyond_the_limit() {
    check(
        "rule : [count] [act=ask] [time=60; count=2;] [result=2; return=1]
         rule : [count] [act=ask] [time=86400; count=2;] [result=2; return=2]
         rule : [base]  [act=ask] [base=1; time=60; count=1;] [result=2; return=3]
         rule : [leak]  [act=ask] [time=60; count=2;] [result=2; return=4]
         rule : [count] [act=ask] [time=60; count=0;] [result=2; return=5]",
        "update act=ask
         update act=ask
         update act=ask
         update act=ask
         update act=ask
         value 1 act=ask -> 5
         value 2 act=ask -> 5
         value 3 act=ask -> 5
         value 4 act=ask -> 2
         value 5 act=ask -> 0
         value 1 act=other -> 0
         value 6 act=ask -> unknown
         complete act=ask -> 1 2 3 4",
    );
}

#[test]
fn a_day_is_that_of_shanghai() {
    check(
        "rule : [count] [act=ask; qid=+;] [time=86400; count=1;] [result=2; return=111]
         rule : [base]  [act=say; qid=+;] [base=2; time=7200; count=1;] [result=2; return=112]",
        "at 0s        update act=ask qid=1
         at 59m59s    browse act=ask qid=1 -> 111
         at 59m59.9s  browse act=ask qid=1 -> 111
         at 1h        browse act=ask qid=1 -> pass
         at 1h        update act=ask qid=1
         at 24h59m59s browse act=ask qid=1 -> 111
         at 25h       browse act=ask qid=1 -> pass

         at 30h update act=say qid=1
                update act=say qid=1
                browse act=say qid=1 -> 112
         at 31h59m59s browse act=say qid=1 -> 112
         at 32h browse act=say qid=1 -> pass
                update act=say qid=1
                browse act=say qid=1 -> 112
         at 48h30m update act=say qid=1
                update act=say qid=1
         at 48h59m59s browse act=say qid=1 -> 112
         at 49h browse act=say qid=1 -> pass",
    );
}

#[test]
fn another_zone_ends_the_day_elsewhere() {
    let text = "[rules]\nrule : [count] [a=+] [time=86400; count=1] [result=1; return=1]";
    let load = |tz| KoalaFile::load(Input::Text { name: "x", base: Path::new(""), text }, tz);
    let engine = engine();
    let rules = KoalaRules::new(load("UTC").unwrap().file, engine.memory(), None).unwrap();
    rules.decide(&engine, KoalaAsk::Update, &request("a=1"), time("0s"));
    let exceeded = |at| rules.decide(&engine, KoalaAsk::Browse, &request("a=1"), time(at)).decided().is_some();
    // Midnight in Shanghai is 16:00 in UTC.
    assert!(exceeded("1h") && exceeded("8h59m59s") && !exceeded("9h"));
    assert_eq!(load("Mars/Olympus").unwrap_err().to_string(), "error: there is no time zone \"Mars/Olympus\"\n");
}

#[test]
fn base_is_free_at_first_and_strict_later() {
    check(
        "rule : [base] [act=ask; ip=+;] [base=3; time=5; count=1;] [result=2; return=115]",
        "at 0s  through act=ask ip=1.1.1.1 -> pass
         at 0s  through act=ask ip=1.1.1.1 -> pass
         at 0s  through act=ask ip=1.1.1.1 -> pass
         at 0s  browse act=ask ip=1.1.1.1 -> 115
                browse act=ask ip=1.1.1.2 -> pass
         at 4.9s browse act=ask ip=1.1.1.1 -> 115
         at 5s  through act=ask ip=1.1.1.1 -> pass
         at 5s  browse act=ask ip=1.1.1.1 -> 115
         at 10s browse act=ask ip=1.1.1.1 -> pass
         at 10s value 115 act=ask ip=1.1.1.1 -> 4",
    );
}

#[test]
fn one_second_is_a_second_from_the_first() {
    check(
        "rule : [base] [ip=+;] [base=1; time=1; count=1;] [result=2; return=1]",
        "at 0.5s update ip=1
         at 1.4s browse ip=1 -> 1
         at 1.5s browse ip=1 -> pass",
    );
}

#[test]
fn leak_forgets_one_by_one() {
    check(
        "rule : [leak] [act=index_page; ip=+] [time=100; count=3; erase1=1; erase2=2] [result=2; return=1201]",
        "at 0s  update act=index_page ip=1
         at 40s update act=index_page ip=1
                browse act=index_page ip=1 -> pass
         at 80s update act=index_page ip=1
                browse act=index_page ip=1 -> 1201
         at 99.9s browse act=index_page ip=1 -> 1201
         at 100s browse act=index_page ip=1 -> pass
                value 1201 act=index_page ip=1 -> 2
         at 100s update act=index_page ip=1
                browse act=index_page ip=1 -> 1201
         at 139.9s browse act=index_page ip=1 -> 1201
         at 140s browse act=index_page ip=1 -> pass",
    );
}

#[test]
fn feedback_gives_back_on_leak_rules_only() {
    check(
        "rule : [leak]  [act=a; ip=+] [time=100; count=3; erase1=1; erase2=2] [result=2; return=1]
         rule : [leak]  [act=a; ip=+] [time=100; count=9; erase1=5] [result=2; return=2]
         rule : [count] [act=a; ip=+] [time=100; count=9] [result=2; return=3]",
        "update act=a ip=1
         update act=a ip=1
         update act=a ip=1
         browse act=a ip=1 -> 1
         erase1 act=a ip=1
         browse act=a ip=1 -> pass
         value 1 act=a ip=1 -> 2
         value 2 act=a ip=1 -> 0
         value 3 act=a ip=1 -> 3
         erase2 act=a ip=1
         value 1 act=a ip=1 -> 0
         erase2 act=a ip=1
         value 1 act=a ip=1 -> 0
         erase2 act=a ip=2
         erase1 act=b ip=1",
    );
}

#[test]
fn combined_values_are_counted_together() {
    check(
        "rule : [count] [act=ask,answer{~}; qid=+] [time=60; count=2;] [result=2; return=1]
         rule : [count] [act=ask,answer; qid=+]    [time=60; count=2;] [result=2; return=2]
         rule : [count] [act=old,older{*}]         [time=60; count=2;] [result=2; return=3]
         rule : [count] [level=1-9{~}]             [time=60; count=2;] [result=2; return=4]",
        "update act=ask qid=1
         update act=answer qid=1
         complete act=ask qid=1 -> 1
         complete act=answer qid=1 -> 1
         complete act=ask qid=2 ->
         value 1 act=ask qid=1 -> 2
         value 2 act=ask qid=1 -> 1
         update act=old
         update act=older
         browse act=old -> 3
         update level=1
         update level=9
         browse level=5 -> 4",
    );
}

#[test]
fn every_field_of_a_condition_tells_whom_a_rule_counts() {
    check(
        "rule : [count] [act!=x; b>1; a @ vip] [time=60; count=1;] [result=2; return=1]",
        "update act=y b=2 a=7
         browse act=y b=2 a=7 -> 1
         browse act=z b=2 a=7 -> pass
         browse act=y b=3 a=7 -> pass
         browse act=y b=2 a=42 -> pass
         browse act=y b=2 a=7 other=1 -> 1",
    );
}

#[test]
fn values_with_separators_do_not_meet() {
    check(
        "rule : [count] [a=+; b=+] [time=60; count=1;] [result=2; return=1]",
        "update a=1|2 b=3
         browse a=1 b=2|3 -> pass
         browse a=1|2 b=3 -> 1",
    );
}

#[test]
fn the_first_exceeded_rule_decides() {
    check(
        "rule : [count] [qid=+] [time=60; count=3;] [result=2; return=9]
         rule : [count] [qid=+] [time=60; count=1;] [result=2; return=1]
         rule : [count] [qid=+] [time=60; count=2;] [result=3; return=2]",
        "browse qid=1 -> pass
         update qid=1
         browse qid=1 -> 1
         complete qid=1 -> 1
         update qid=1
         browse qid=1 -> 1
         complete qid=1 -> 1 2
         update qid=1
         browse qid=1 -> 9
         complete qid=1 -> 9 1 2",
    );
}

#[test]
fn write_through_counts_every_matching_rule_also_when_it_denies() {
    check(
        "rule : [count]  [qid=+] [time=60; count=1;] [result=2; return=1]
         rule : [direct] [uid=7] [] [result=2; return=2]
         rule : [count]  [uid=+] [time=60; count=9;] [result=2; return=3]",
        "through qid=1 uid=7 -> 2
         value 1 qid=1 -> 1
         value 3 uid=7 -> 1
         through qid=1 uid=7 -> 1
         value 1 qid=1 -> 2
         value 3 uid=7 -> 2
         update qid=1 uid=7
         value 3 uid=7 -> 3
         browse qid=1 uid=7 -> 1
         value 3 uid=7 -> 3",
    );
}

#[test]
fn a_count_of_zero_is_never_exceeded() {
    check(
        "rule : [count] [a=1] [time=1; count=0;] [result=2; return=1]
         rule : [base]  [a=1] [time=1; count=0; base=1] [result=2; return=2]
         rule : [leak]  [a=1] [time=1] [result=2; return=3]
         rule : [base]  [b=1] [time=60; count=1] [result=2; return=4]",
        "browse a=1 -> pass
         update a=1
         update a=1
         browse a=1 -> pass
         complete a=1 ->
         browse b=1 -> pass
         update b=1
         browse b=1 -> 4",
    );
}

#[test]
fn daily_counts_end_at_midnight() {
    let engine = engine();
    let text = "rule : [count] [qid=+] [time=60; count=1;] [result=2; return=20]
                rule : [count] [qid=+] [time=60; count=9;] [result=2; return=10]";
    let rules = KoalaRules::new(file(text), engine.memory(), None).unwrap();
    let ask = |rules: &KoalaRules, ask, at| {
        let answer = rules.decide(&engine, ask, &request("qid=1"), time(at));
        rules.note(&answer, time(at));
    };
    let counts = |rules: &KoalaRules, at| -> Vec<(u32, u64, u64)> {
        rules.daily_counts(time(at)).iter().map(|rule| (rule.rule, rule.allowed, rule.denied)).collect()
    };
    ask(&rules, KoalaAsk::BrowseAndCount, "0s");
    ask(&rules, KoalaAsk::BrowseAndCount, "0s");
    ask(&rules, KoalaAsk::Complete, "0s");
    assert_eq!(counts(&rules, "1s"), [(10, 2, 0), (20, 1, 2)], "the second rule was not met by the second request");
    // A file that is compiled and never put in force changes nothing.
    let other = "rule : [count] [qid=+] [time=60; count=1;] [result=2; return=30]";
    drop(KoalaRules::new(file(other), engine.memory(), Some(&rules)).unwrap());
    assert_eq!(counts(&rules, "1s"), [(10, 2, 0), (20, 1, 2)]);
    // An edited file keeps the counts of its rules, and forgets those of rules that are gone.
    let edited = "rule : [count] [qid=+] [time=60; count=5;] [result=2; return=20]";
    let edited = KoalaRules::new(file(edited), engine.memory(), Some(&rules)).unwrap();
    assert_eq!(counts(&edited, "59m59s"), [(20, 1, 2)]);
    assert_eq!(counts(&edited, "1h"), [(20, 0, 0)], "midnight in Shanghai");
    ask(&edited, KoalaAsk::Browse, "1h");
    assert_eq!(counts(&edited, "24h59m59s"), [(20, 1, 0)]);
}

#[test]
fn counters_survive_an_edit_that_keeps_method_and_time() {
    let engine = engine();
    let rules = |text: &str| KoalaRules::new(file(text), engine.memory(), None).unwrap();
    let before = rules("rule : [count] [qid=+] [time=60; count=1;] [result=2; return=1]");
    before.decide(&engine, KoalaAsk::Update, &request("qid=1"), time("0s"));
    let value = |text: &str| rules(text).value(&engine, 1, &request("qid=1"), time("1s"));
    assert_eq!(value("rule : [count] [qid=+] [time=60; count=7;] [result=3; return=1]"), Some(1));
    assert_eq!(value("rule : [count] [qid=+] [time=61; count=1;] [result=2; return=1]"), Some(0));
}
