//! What each command answers.

use flowgate::Span;
use proptest::prelude::*;

use crate::{Client, Running, config, encode, locked};

/// Runs a script: each line a command and its reply, or `wait N` milliseconds.
#[track_caller]
pub(super) fn check(server: &Running, client: &mut Client, script: &str) {
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(millis) = line.strip_prefix("wait ") {
            server.clock.advance(Span::from_millis(millis.parse().unwrap()));
            continue;
        }
        let (command, reply) = line.split_once(" -> ").unwrap();
        assert_eq!(client.call(command.trim()).trim_end(), reply.trim(), "{command}");
    }
}

#[track_caller]
fn check_plain(script: &str) {
    let server = Running::plain();
    let mut client = server.connect();
    check(&server, &mut client, script);
}

#[test]
fn waits_are_real_time_while_the_clock_runs_at_half_speed() {
    let server = Running::plain();
    server.clock.put_back(Span::from_secs(3600));
    check(
        &server,
        &mut server.connect(),
        "TIME                            -> [1699996400 0]
         CL.THROTTLE user 0 1 2          -> [0 1 0 -1 4]
         CL.THROTTLE user 0 1 2          -> [1 1 0 4 4]
         TTL user                        -> 4
         PTTL user                       -> 4000
         FG.LIMIT key 1/2s               -> [1 1 0 -1 4000 0 '' '']
         FG.LIMIT key 1/2s               -> [0 1 0 4000 4000 0 '' '']
         wait 3999
         CL.THROTTLE user 0 1 2          -> [1 1 0 1 1]
         FG.LIMIT key 1/2s               -> [0 1 0 1 1 0 '' '']
         wait 1
         FG.LIMIT key 1/2s               -> [1 1 0 -1 4000 0 '' '']
         CL.THROTTLE user 0 1 2          -> [0 1 0 -1 4]
         TIME                            -> [1699996404 0]",
    );
}

#[test]
fn throttle_answers_as_redis_cell_does() {
    check_plain(
        "CL.THROTTLE user 15 30 60     -> [0 16 15 -1 2]
         cl.throttle user 15 30 60 10  -> [0 16 5 -1 22]
         cl.throttle user 15 30 60 6   -> [1 16 5 2 22]
         wait 2000
         cl.throttle user 15 30 60 6   -> [0 16 0 -1 32]
         cl.throttle user 15 30 60 -6  -> [0 16 6 -1 20]
         cl.throttle user 15 30 60 17  -> [1 16 6 -1 20]",
    );
}

#[test]
fn throttle_refuses_in_redis_cells_words() {
    check_plain(
        "cl.throttle              -> -Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]
         cl.throttle k 1 2        -> -Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]
         cl.throttle k 1 2 3 4 5  -> -Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]
         cl.throttle k a b 3      -> -Cell error: Store error: Couldn't parse as integer: a
         cl.throttle k 1 b 0      -> -Cell error: Store error: Couldn't parse as integer: b
         cl.throttle k 0 0 0 x    -> -Cell error: Store error: Couldn't parse as integer: x
         cl.throttle k 1 0 60     -> -Cell error: Store error: Zero rates are not supported
         cl.throttle k 1 30 0     -> -Cell error: Store error: Zero rates are not supported
         cl.throttle k 1 2000000000 1 -> -Cell error: Store error: Zero rates are not supported
         cl.throttle k -1 0 60    -> -ERR value is out of range
         cl.throttle k 1 1 9223372036854775807 -> -ERR value is out of range
         cl.throttle k 9223372036854775807 1 1 -> -ERR value is out of range
         cl.throttle k 1 1 1 99999999999999999999 -> -Cell error: Store error: Couldn't parse as integer: 99999999999999999999
         cl.throttle k 1 1 1 9223372036854775807 -> -ERR value is out of range
         exists k                 -> 0",
    );
    let server = Running::plain();
    let mut client = server.connect();
    let empty = "-Cell error: Store error: Couldn't parse as integer: ";
    assert_eq!(client.call_words(&[b"CL.THROTTLE", b"k", b"", b"1", b"1"]), empty);
    assert_eq!(client.call_words(&[b"CL.THROTTLE", b"k", b"\xff\r\n", b"1", b"1"]), format!("{empty}\u{fffd}  "));
    assert_eq!(client.call_words(&[b"CL.THROTTLE", b"\xff\0\r\n", b"1", b"1", b"1"]), "[0 2 1 -1 1]");
    assert_eq!(client.call_words(&[b"CL.THROTTLE", b"", b"1", b"1", b"1"]), "[0 2 1 -1 1]");
}

#[test]
fn limits_on_keys_of_the_caller() {
    check_plain(
        "fg.limit k 5/60s            -> [1 5 4 -1 60000 0 '' '']
         FG.LIMIT k 5/60s 4 take     -> [1 5 0 -1 60000 0 '' '']
         wait 12000
         fg.limit k 5/60s 1 PEEK     -> [0 5 0 48000 48000 0 '' '']
         fg.limit k 5/60s 2 refund   -> [1 5 2 -1 48000 0 '' '']
         fg.limit k 5/60s 2 record   -> [1 5 0 -1 60000 0 '' '']
         fg.limit k 5/60s 6          -> [0 5 0 -2 60000 0 '' '']
         fg.limit k unlimited        -> -WRONGTYPE the key is in use by a limit of another algorithm: use another key, or DEL it
         fg.limit u unlimited        -> [1 -1 -1 -1 0 0 '' '']
         cl.throttle k 15 30 60      -> -WRONGTYPE the key is in use by a limit of another algorithm: use another key, or DEL it
         fg.limit k 5/60s -1         -> -ERR value is not an integer or out of range; usage: FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]
         fg.limit k bucket 30/60s burst=15 -> -ERR value is not an integer or out of range; usage: FG.LIMIT key \"bucket 30/60s burst=15\" [cost]: quote a limit that has spaces
         fg.limit k 5/60s x          -> -ERR value is not an integer or out of range; usage: FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]
         fg.limit k 5/60s 1 give     -> -ERR syntax error; usage: FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]
         fg.limit k 5/60s 1 take 1   -> -ERR syntax error; usage: FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]
         fg.limit k                  -> -ERR wrong number of arguments for 'fg.limit' command; usage: FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]",
    );
    let server = Running::plain();
    let wrong = server.connect().call("fg.limit k five/60s");
    assert!(wrong.starts_with("-ERR ") && wrong.contains("five"), "{wrong}");
}

#[test]
fn keys_come_and_go() {
    check_plain(
        "ttl k                       -> -2
         cl.throttle k 4 1 1 3       -> [0 5 2 -1 3]
         fg.limit l 5/60s            -> [1 5 4 -1 60000 0 '' '']
         dbsize                      -> 2
         wait 500
         ttl k                       -> 3
         pttl k                      -> 2500
         exists k l none k           -> 3
         del k none l                -> 2
         exists k l                  -> 0
         cl.throttle k 4 1 1 3       -> [0 5 2 -1 3]
         wait 3000
         pttl k                      -> -2
         del k                       -> 0
         del                         -> -ERR wrong number of arguments for 'del' command",
    );
}

#[test]
fn databases_keep_keys_apart() {
    check_plain(
        "cl.throttle k 4 1 60        -> [0 5 4 -1 60]
         select 15                   -> OK
         exists k                    -> 0
         dbsize                      -> 0
         cl.throttle k 4 1 60 2      -> [0 5 3 -1 120]
         fg.limit l 5/60s            -> [1 5 4 -1 60000 0 '' '']
         dbsize                      -> 2
         ttl k                       -> 120
         select 16                   -> -ERR DB index is out of range
         select -1                   -> -ERR DB index is out of range
         select 257                  -> -ERR DB index is out of range
         select x                    -> -ERR value is not an integer or out of range
         exists k l                  -> 2
         select 0                    -> OK
         pttl k                      -> 60000
         exists l                    -> 0
         dbsize                      -> 1
         select 3                    -> OK
         del k l                     -> 0
         fg.limit k 5/60s            -> [1 5 4 -1 60000 0 '' '']
         select 15                   -> OK
         del k l                     -> 2
         dbsize                      -> 0
         select 3                    -> OK
         dbsize                      -> 1
         reset                       -> RESET
         exists k                    -> 1
         ttl k                       -> 60
         config get databases        -> [databases 16]",
    );
    let server = Running::plain();
    let mut client = server.connect();
    let keyspace = |client: &mut Client| client.call("INFO").lines().filter(|line| line.starts_with("db")).count();
    assert_eq!(keyspace(&mut client), 1);
    check(&server, &mut client, "select 9 -> OK\n fg.limit k 5/60s -> [1 5 4 -1 60000 0 '' '']");
    let info = client.call("INFO");
    assert!(info.contains("db0:keys=0,expires=0") && info.contains("db9:keys=1,expires=1"), "{info}");
    assert_eq!(server.connect().call("exists k"), "0", "other connections are in the first database");
}

#[test]
fn a_transaction_and_a_pipeline_change_the_database_where_they_say_so() {
    let server = Running::plain();
    let mut client = server.connect();
    let script = "multi -> OK\n cl.throttle k 4 1 60 -> QUEUED\n select 2 -> QUEUED\n cl.throttle k 4 1 60 3 -> QUEUED
                  exec -> [[0 5 4 -1 60] OK [0 5 2 -1 180]]\n cl.throttle k 4 1 60 -> [0 5 1 -1 240]";
    check(&server, &mut client, script);
    let words = |command: &str| encode(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    let pipeline = ["select 0", "cl.throttle k 4 1 60", "select 2", "cl.throttle k 4 1 60", "cl.throttle k 4 1 60"];
    client.send(pipeline.map(words).concat());
    assert_eq!(pipeline.map(|_| client.reply()), ["OK", "[0 5 3 -1 120]", "OK", "[0 5 0 -1 300]", "[1 5 0 60 300]"]);
    // A long transaction takes several turns; the command behind it is looked at before it ends.
    let filler = vec!["ping"; 5_000];
    let long = [&["multi"][..], &filler, &["select 7", "exec", "cl.throttle k 4 1 60 5", "select 2", "ttl k"]].concat();
    client.send(long.iter().flat_map(|command| words(command)).collect::<Vec<u8>>());
    let replies: Vec<String> = long.iter().map(|_| client.reply()).collect();
    assert_eq!(replies[replies.len() - 3..], ["[0 5 0 -1 300]", "OK", "300"], "the key of the seventh database is new");
}

#[test]
fn rules_decide_by_fields_and_bans_come_first() {
    let rules = r#"rule = [{ name = "reply", when = { act = "reply" }, by = ["user"], limits = ["2/60s"], action = "captcha" },
        { name = "agent", when = { ua = "bot" }, by = ["ua"], limits = ["1/60s"] }]"#;
    let server = Running::start(config(""), rules);
    let mut client = server.connect();
    let script = "
        fg.take 1 header.user-agent bot  -> [1 1 0 -1 60000 0 allow agent]
        fg.take 1 ua bot               -> [0 1 0 60000 60000 0 deny agent]
        fg.take 1 act reply user 42    -> [1 2 1 -1 60000 0 allow reply]
        fg.peek 2 act reply user 42    -> [0 2 1 60000 60000 0 captcha reply]
        fg.record 1 act reply user 42  -> [1 2 0 -1 60000 0 allow reply]
        fg.take 3 act reply user 42    -> [0 2 0 -2 60000 0 captcha reply]
        fg.refund 2 act reply user 42  -> [1 2 2 -1 0 0 allow reply]
        fg.take 1 act other            -> [1 -1 -1 -1 0 0 allow '']
        fg.ban user 42 60 spam         -> OK
        fg.take 1 act reply user 42    -> [0 -1 -1 60000 60000 0 deny '']
        fg.unban user 42               -> 1
        fg.unban user 42               -> 0
        fg.take 1 act reply user 42    -> [1 2 1 -1 60000 0 allow reply]
        fg.take 1 act                  -> -ERR syntax error; usage: FG.TAKE cost field value [field value ...]
        fg.take x act reply            -> -ERR value is not an integer or out of range; usage: FG.TAKE cost field value [field value ...]
        fg.ban user 42 60 a b          -> -ERR wrong number of arguments for 'fg.ban' command; usage: FG.BAN field value seconds [reason]
        fg.ban user 42 0               -> -ERR value is not an integer or out of range; usage: FG.BAN field value seconds [reason]
        fg.ban user 42                 -> -ERR wrong number of arguments for 'fg.ban' command; usage: FG.BAN field value seconds [reason]";
    check(&server, &mut client, script);
    assert_eq!(client.call_words(&[b"FG.TAKE", b"1", b"user", b"\xff"]), "-ERR value: expected UTF-8");
}

#[test]
fn each_part_of_a_ban_has_a_size() {
    let server = Running::start(config(""), "");
    let mut client = server.connect();
    let mut ban = |field: usize, value: usize, reason: usize| {
        let [field, value, reason] = [field, value, reason].map(|length| "x".repeat(length).into_bytes());
        client.call_words(&[b"FG.BAN", &field, &value, b"60", &reason])
    };
    assert_eq!(ban(256, 1024, 1024), "OK");
    assert_eq!(ban(257, 1, 0), "-ERR field: 257 bytes, expected at most 256");
    assert_eq!(ban(1, 1025, 0), "-ERR value: 1025 bytes, expected at most 1024");
    assert_eq!(ban(1, 1, 1025), "-ERR reason: 1025 bytes, expected at most 1024");
}

#[test]
fn what_clients_say_when_they_connect() {
    check_plain(
        "PING                -> PONG
         ping hello          -> hello
         ping a b            -> -ERR wrong number of arguments for 'ping' command
         ECHO hello          -> hello
         SELECT 0            -> OK
         SELECT x            -> -ERR value is not an integer or out of range
         CLIENT SETINFO LIB-NAME x -> OK
         CLIENT GETNAME      -> nil
         CLIENT SETNAME me   -> OK
         CLIENT GETNAME      -> me
         CLIENT ID           -> 1
         CLIENT FLY          -> -ERR unknown subcommand 'FLY'. CLIENT knows GETNAME, ID, NO-EVICT, NO-TOUCH, SETINFO, SETNAME.
         TIME                -> [1700000000 0]
         CONFIG GET save     -> [save '']
         CONFIG GET nothing  -> []
         CONFIG GET          -> -ERR wrong number of arguments for 'config|get' command
         CONFIG GET maxmemory -> [maxmemory 1000000000]
         CONFIG SET save x   -> -ERR unknown subcommand 'SET'. CONFIG knows GET.
         COMMAND COUNT       -> 32
         COMMAND INFO cl.throttle nothing -> [[cl.throttle -1 [write fast] 1 1 1] nil]
         COMMAND DOCS        -> []
         AUTH secret         -> -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
         HELLO               -> [server flowgate version 7.2.0 proto 2 id 1 mode standalone role master modules []]
         HELLO 4             -> -NOPROTO unsupported protocol version
         HELLO 3 SETNAME you -> {server flowgate version 7.2.0 proto 3 id 1 mode standalone role master modules []}
         CLIENT GETNAME      -> you
         CONFIG GET save     -> {save ''}
         COMMAND INFO x      -> [null]
         CL.THROTTLE k 4 1 1 -> [0 5 4 -1 1]
         RESET               -> RESET
         CLIENT GETNAME      -> nil",
    );
}

#[test]
fn a_password_is_asked_for() {
    let server = Running::start(locked(), "");
    let script = "
        PING                            -> -NOAUTH Authentication required.
        CL.THROTTLE k 4 1 1             -> -NOAUTH Authentication required.
        NOTHING                         -> -NOAUTH Authentication required.
        AUTH sesam                      -> -WRONGPASS invalid username-password pair or user is disabled.
        AUTH sesame2                    -> -WRONGPASS invalid username-password pair or user is disabled.
        AUTH admin sesame               -> -WRONGPASS invalid username-password pair or user is disabled.
        HELLO 3 AUTH default x          -> -WRONGPASS invalid username-password pair or user is disabled.
        AUTH sesame                     -> OK
        PING                            -> PONG
        RESET                           -> RESET
        PING                            -> -NOAUTH Authentication required.
        AUTH default sesame             -> OK
        PING                            -> PONG";
    check(&server, &mut server.connect(), script);
    let mut client = server.connect();
    assert!(client.call("HELLO 2 AUTH default sesame").contains("proto 2"));
    assert_eq!(client.call("PING"), "PONG");
    let info = client.call("INFO");
    assert!(info.contains("acl_access_denied_auth:4\r\n"), "{info}");
}

#[test]
fn quit_says_goodbye_and_closes() {
    let server = Running::plain();
    let mut client = server.connect();
    client.send(b"PING\r\nQUIT\r\nPING\r\n");
    assert_eq!(client.rest(), "+PONG\r\n+OK\r\n");
}

#[test]
fn a_transaction_is_answered_by_exec() {
    check_plain(
        "MULTI                      -> OK
         CL.THROTTLE k 4 5 60       -> QUEUED
         cl.throttle k 4 x 60       -> QUEUED
         FG.LIMIT l 5/60s           -> QUEUED
         exists k                   -> QUEUED
         MULTI                      -> -ERR MULTI calls can not be nested
         EXEC                       -> [[0 5 4 -1 12] -Cell error: Store error: Couldn't parse as integer: x [1 5 4 -1 60000 0 '' ''] 1]
         exists k l                 -> 2
         EXEC                       -> -ERR EXEC without MULTI
         DISCARD                    -> -ERR DISCARD without MULTI
         MULTI                      -> OK
         EXEC                       -> []",
    );
}

#[test]
fn what_is_not_understood_ends_a_transaction() {
    check_plain(
        "MULTI                      -> OK
         FG.LIMIT k 5/60s           -> QUEUED
         FG.LIMIT k                 -> -ERR wrong number of arguments for 'fg.limit' command; usage: FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]
         FG.LIMIT k 5/60s           -> QUEUED
         EXEC                       -> -EXECABORT Transaction discarded because of previous errors.
         exists k                   -> 0
         MULTI                      -> OK
         nonsense                   -> -ERR unknown command 'nonsense', with args beginning with:
         EXEC                       -> -EXECABORT Transaction discarded because of previous errors.
         MULTI                      -> OK
         FG.LIMIT k 5/60s           -> QUEUED
         DISCARD                    -> OK
         MULTI                      -> OK
         FG.LIMIT k 5/60s           -> QUEUED
         RESET                      -> RESET
         EXEC                       -> -ERR EXEC without MULTI
         exists k                   -> 0",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A command is looked at before its turn; its answer must not show that. One that is written by hand is not.
    #[test]
    fn a_pipeline_answers_as_its_commands_would_one_by_one(commands in prop::collection::vec(
        prop_oneof![
            ("[abc]", 0..3).prop_map(|(key, quantity)| format!("CL.THROTTLE {key} 3 1 86400 {quantity}")),
            "[abc]".prop_map(|key| format!("cl.throttle {key} 3 1 86400")),
            "[abc]".prop_map(|key| format!("CL.THROTTLE {key} 3 x 86400")),
            "[abc]".prop_map(|key| format!("FG.LIMIT limit{key} 3/60s")),
            Just("CL.THROTTLE".to_owned()),
            prop_oneof!["PING", "MULTI", "EXEC"],
        ],
        0..40,
    )) {
        let (together, apart) = (Running::plain(), Running::plain());
        let mut client = together.connect();
        let encoded: Vec<_> = commands
            .iter()
            .map(|command| encode(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
            .collect();
        client.send(encoded.concat());
        let mut other = apart.connect();
        for command in &commands {
            other.send(format!("{command}\r\n").as_bytes());
            let answer = other.reply();
            prop_assert_eq!(client.reply(), answer, "{}", command);
        }
    }
}
