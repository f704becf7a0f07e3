//! The sample policies in `examples/`, each with a day in its life.

use std::path::Path;

use flowgate::MemoryStore;
use flowgate_engine::Engine;
use flowgate_engine::config::{Input, load};

use crate::script::run;

/// The sample in force; it must be right and give no reason to warn.
fn sample(name: &str) -> Engine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let loaded = load(Input::File(&path), []).unwrap_or_else(|report| panic!("{report}"));
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    Engine::new(&loaded.config.policy, MemoryStore::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_example_is_right_and_gives_no_warning() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let names = std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    assert!(names.len() >= 4, "{names:?}");
    names.iter().for_each(|name| drop(sample(name)));
    drop(sample("../packaging/systemd/flowgate.toml"));
}

#[test]
fn the_gateway_example_decides_as_described() {
    run(
        &sample("gateway.toml"),
        "
        # lists come first
        at 0s    take ip=203.0.113.9 path=/               -> deny by blocked, never, code 403
        at 0s    take ip=198.51.100.40 path=/             -> deny by blocked
        at 0s    take ip=2001:db8:bad::1 path=/           -> deny by blocked
        at 0s    take ip=192.0.2.5 path=/ *1000           -> allow by partners

        # an address: 100 in five seconds, 300 in a minute
        at 0s    take ip=1.1.1.1 path=/a *100             -> allow by address, at once
        at 1s    take ip=1.1.1.1 path=/a                  -> deny by address, retry in 4s, code 429, exceeded [address: sliding 100/5s]
        at 5s    take ip=1.1.1.1 path=/a *100             -> allow by address
        at 10s   take ip=1.1.1.1 path=/a *100             -> allow by address
        at 15s   take ip=1.1.1.1 path=/a                  -> deny by address, retry in 45s, exceeded [address: sliding 300/60s]
        at 15s   take ip=::ffff:1.1.1.2 path=/a           -> allow by address
        at 60s   take ip=1.1.1.1 path=/a                  -> allow by address

        # logging in: five a minute, then bans of 1, 10 and 60 minutes
        at 100s  take ip=2.2.2.2 method=POST path=/login *5  -> allow by login
        at 100s  take ip=2.2.2.2 method=POST path=/login *2  -> deny by login, retry in 60s, not banned, says Too many attempts to log in.
        at 100s  take ip=2.2.2.2 method=POST path=/login     -> deny by login, banned until 160s
        at 120s  take ip=2.2.2.2 method=GET path=/login      -> allow by address
        at 159s  take ip=2.2.2.2 method=POST path=/login *9  -> deny by login, banned until 160s, retry in 1s
        at 160s  take ip=2.2.2.2 method=POST path=/login *5  -> allow by login
        at 161s  take ip=2.2.2.2 method=POST path=/login *2  -> deny by login, not banned
        at 161s  take ip=2.2.2.2 method=POST path=/login     -> deny by login, banned until 761s
        at 761s  take ip=2.2.2.2 method=POST path=/login     -> allow by login

        # searching, all together
        at 800s  take ip=3.0.0.1 path=/api/search/a/b *60  -> allow by address
        at 800s  take ip=3.0.0.2 path=/api/search/x *40    -> allow by search
        at 800s  take ip=3.0.0.3 path=/api/search/x        -> deny by search, retry in 0.02s
        at 801s  take ip=3.0.0.3 path=/api/search/x        -> allow by search, 49 left, of 100

        # what the account has paid for
        at 900s  take account=f level=free path=/a *60     -> allow by account
        at 900s  take account=f level=free path=/a         -> deny by account, retry in 60s, says Your plan allows no more.
        at 900s  take account=f level=pro path=/a *540     -> allow by account
        at 900s  take account=p path=/a *10                -> allow by account
        at 900s  take account=p path=/a                    -> deny by account
        at 999s  take account=e level=pro path=/api/7/export  -> allow by export, at once
        at 999s  take account=e level=pro path=/api/8/export  -> allow by export, after 1s
        ",
    );
}

/// The script begins at 06:13:20 in Shanghai; midnight is at 64000 s.
#[test]
fn the_forum_example_decides_as_described() {
    run(
        &sample("forum.toml"),
        "
        # a new user always solves a captcha
        at 0s    take act=post user=9 level=new *3                 -> captcha by new-user, never
        at 0s    take act=post user=9 level=new captcha=solved     -> allow by spacing
        at 0s    take act=like user=9 level=new                    -> allow, unmatched

        # five replies a minute
        at 0s    take act=reply user=1 *5           -> allow by reply
        at 30s   take act=reply user=1              -> deny by reply, retry in 30s, code 201, says You reply too fast.
        at 30s   take act=reply user=2              -> allow by reply
        at 60s   take act=reply user=1 *5           -> allow by reply

        # the eleventh post of the day
        at 70s   take act=post user=3 *10                  -> allow by post
        at 80s   take act=post user=3                      -> captcha by post, retry in 63920s, code 202
        at 80s   take act=post user=3 captcha=solved       -> allow by spacing, 19 left, of 30

        # after thirty a day, ten seconds apart
        at 120s  take act=reply user=1 *5           -> allow by reply
        at 180s  take act=reply user=1 *5           -> allow by reply
        at 240s  take act=reply user=1 *5           -> allow by reply
        at 300s  take act=reply user=1 *5           -> matched, at once
        at 360s  take act=reply user=1              -> allow by spacing, 0 left, of 1
        at 361s  take act=reply user=1              -> deny by spacing, retry in 9s, code 203, says Take your time.
        at 370s  take act=reply user=1              -> allow by spacing
        at 380s  take act=reply user=1              -> allow by spacing

        # a hundred replies a day, then all begins anew at midnight
        at 400s    record act=reply user=4 x100     -> allow by reply
        at 500s    take act=reply user=4            -> deny by reply, retry in 63500s, exceeded [reply: fixed 100/1d tz=Asia/Shanghai]
        at 63999s  take act=post user=3             -> captcha by post, retry in 1s
        at 64000s  take act=post user=3             -> allow by post, 9 left
        at 64000s  take act=reply user=4            -> allow by reply, 4 left
        at 64000s  take act=reply user=1 *2         -> allow by reply
        ",
    );
}

#[test]
fn the_website_example_decides_as_described() {
    run(
        &sample("website.toml"),
        "
        at 0s  take ip=1.1.1.1 ua=Mozilla path=/ *20   -> allow by addresses
        at 0s  take ip=1.1.1.1 ua=Mozilla path=/       -> deny by addresses
        at 0s  take ip=2.2.2.2 ua=SomeBot path=/ *10   -> allow by robots
        at 0s  take ip=2.2.2.2 ua=SomeBot path=/       -> deny by robots
        at 0s  take ip=2.2.2.2 header.user-agent=SomeBot path=/       -> deny by robots
        at 0s  take ip=3.3.3.3 header.User-Agent=SomeBot path=/ *10   -> allow by robots
        at 0s  take ip=3.3.3.3 ua=SomeBot path=/                      -> deny by robots
        ",
    );
}
