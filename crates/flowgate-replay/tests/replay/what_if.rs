//! The curves at other counts, compared with replays at those counts.

use std::fmt::Write;

use flowgate::Time;
use flowgate_api::Operation;
use flowgate_engine::Request;
use flowgate_engine::config::Config;
use flowgate_replay::what_if::{CurveBounds, WhatIf};
use serde_json::Value;

use crate::Trial;

/// Random requests of some users, some of them busier than others. The generator gives the same requests each time.
fn requests(number: usize, users: u64) -> Vec<(u64, u64, String)> {
    let mut state = 42_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut second = 1_700_000_000;
    let mut requests = Vec::new();
    for _ in 0..number {
        second += next(3);
        let user = (next(users) * next(users)) / users;
        requests.push((second, 1 + next(2), format!("u{user}")));
    }
    requests
}

fn text(requests: &[(u64, u64, String)]) -> String {
    let mut text = String::new();
    for (second, cost, user) in requests {
        writeln!(text, r#"{{"ts":{second},"cost":{cost},"fields":{{"user":"{user}","plan":"{}"}}}}"#, &user[..2])
            .unwrap();
    }
    text
}

#[test]
fn a_curve_is_a_replay_at_each_count() {
    let requests = requests(1_500, 40);
    let trace = text(&requests);
    for (limit, count_denied) in [
        ("20/10m", false),
        ("20/10m", true),
        ("bucket 20/10m burst=5", false),
        ("fixed 20/h", false),
        ("pace 2/min", false),
    ] {
        let policy = |limit: &str| {
            format!("rule = [{{ name = 'r', by = ['user'], limits = ['{limit}'], count_denied = {count_denied} }}]")
        };
        let summary = Trial::new(&policy(limit), trace.as_bytes()).what_if().json();
        let curve = &summary["what_if"]["curves"][0];
        assert_eq!((&curve["requests"], &curve["one_in"]), (&summary["requests"], &Value::from(1)));
        let points = curve["points"].as_array().unwrap();
        assert!(points.len() >= 14, "{points:?}");
        for point in points.iter().step_by(4).chain([&points[curve["configured"].as_u64().unwrap() as usize]]) {
            let alone = Trial::new(&policy(point["limit"].as_str().unwrap()), trace.as_bytes()).json();
            assert_eq!(point["requests"], alone["denied"], "{limit} {point}");
            assert_eq!(point["subjects"], alone["subjects_denied"]["count"], "{limit} {point}");
        }
        let spares = curve["spares"].as_u64().map(|index| index as usize);
        let is_spared = |index: usize| points[index]["subjects"].as_u64().unwrap() == 0;
        assert_eq!(spares, (0..points.len()).find(|&index| is_spared(index)), "of 40 subjects none may be hit");
    }
}

#[test]
fn each_limit_and_each_case_has_its_curve() {
    let policy = "rule = [{ name = 'two', by = ['user'], limits = ['5/min', 'unlimited', '50/day'] },
                 { name = 'plans', limits_by = { field = 'plan', u1 = ['3/s'], u3 = ['9/s'], default = ['5/s'] } },
                 { name = 'never', when = { user = 'nobody' }, limits = ['1/s'] }]";
    let summary = Trial::new(policy, text(&requests(500, 30)).as_bytes()).what_if().json();
    let curves = summary["what_if"]["curves"].as_array().unwrap();
    let shown: Vec<String> = curves
        .iter()
        .map(|curve| format!("{} {} {}", curve["rule"], curve["case"], curve["limit"]).replace('"', ""))
        .collect();
    assert_eq!(
        shown,
        [
            "two null sliding 5/1m",
            "two null sliding 50/1d",
            "plans null sliding 5/1s",
            "plans u1 sliding 3/1s",
            "plans u3 sliding 9/1s"
        ]
    );
    let requests = |index: usize| curves[index]["requests"].as_u64().unwrap();
    assert_eq!(requests(2) + requests(3) + requests(4), 500);
}

#[test]
fn a_sample_of_subjects_stands_for_all() {
    let config = Config::from_toml("rule = [{ name = 'r', by = ['user'], limits = ['3/60s'] }]").unwrap();
    let curve = |bounds: CurveBounds| {
        let mut what_if = WhatIf::bounded(&config.policy.rules, bounds);
        for round in 0..5_u64 {
            for user in 0..4_000_u64 {
                // Every tenth user asks too often, from its second round on.
                for _ in 0..if user % 10 == 0 { 2 } else { 1 } {
                    let name = user.to_string();
                    let request = Request::new().field("user", &name);
                    what_if.add(0, Operation::Take, &request, Time::from_secs(1_700_000_000 + 20 * round + user / 200));
                }
            }
        }
        let curve = what_if.curves()[0];
        let own = &curve.points()[curve.configured()];
        let share = |part: u64, whole: u64| part as f64 / whole as f64;
        (
            curve.one_in(),
            curve.subjects_seen(),
            share(own.requests, curve.requests()),
            share(own.subjects, curve.subjects_seen()),
        )
    };
    let (one_in, subjects, requests, denied) = curve(CurveBounds { bytes: 64 << 20, subjects: 1 << 20 });
    assert_eq!((one_in, subjects), (1, 4_000));
    assert_eq!(denied, 0.1, "every tenth");
    for bounds in [CurveBounds { bytes: 64 << 20, subjects: 1_500 }, CurveBounds { bytes: 1 << 20, subjects: 1 << 20 }]
    {
        let sample = curve(bounds);
        assert!(sample.0 >= 4 && (100..1_500).contains(&sample.1), "{sample:?}");
        // Five standard deviations of that number of subjects.
        let most = 5.0 * (denied * (1.0 - denied) / sample.1 as f64).sqrt();
        assert!((sample.2 - requests).abs() < most && (sample.3 - denied).abs() < most, "{sample:?} {requests}");
    }
}
