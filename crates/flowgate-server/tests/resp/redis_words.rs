//! Refusals in Redis's own words: the same commands to a Redis and to a server, and the same errors.

use flowgate_testkit::redis::Redis;

use crate::{Client, Running, encode, locked};

#[track_caller]
fn check_same(redis: &Redis, server: &Running, commands: &[&[&str]]) {
    for words in commands {
        // Redis 7.0 lacks two words of the later versions.
        let expected = redis.cli(words).replace("the HELLO AUTH <user>", "the HELLO <proto> AUTH <user>");
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut client: Client = server.connect();
        client.send(encode(&words));
        let reply = client.reply();
        assert!(reply.starts_with('-'), "{reply}");
        assert_eq!(Some(reply.as_str()), expected.split("\r\n").next());
    }
}

#[test]
fn refusals_are_those_of_redis_word_for_word() {
    let long = "x".repeat(200);
    check_same(
        &Redis::start(),
        &Running::plain(),
        &[
            &["CLUSTER", "INFO"],
            &["cluster", "slots"],
            &["CLUSTER"],
            &["ASKING"],
            &["READONLY"],
            &["READWRITE"],
            &["SENTINEL", "MASTERS"],
            &["sentinel", "get-master-addr-by-name", "mymaster"],
            &["SENTINEL"],
            &["nonsense", "a", &long, "b"],
            &[&long],
            &["AUTH", "secret"],
            &["AUTH", "a", "b", "c"],
            &["AUTH", "nobody", "x"],
            &["SELECT", "16"],
            &["SELECT", "-1"],
            &["SELECT", "x"],
            &["HELLO", "4"],
            &["HELLO", "x"],
            &["HELLO", "3", "FLY"],
            &["HELLO", "3", "SETNAME"],
            &["HELLO", "3", "AUTH", "default"],
            &["HELLO", "3", "SETNAME", "a b"],
            &["HELLO", "3", "AUTH", "nobody", "x"],
            &["CLIENT", "SETNAME", "a b"],
        ],
    );
    let redis = Redis::start_with(&["--requirepass", "sesame"]);
    check_same(&redis, &Running::start(locked(), ""), &[&["HELLO", "3"], &["HELLO", "2", "SETNAME", "me"], &["PING"]]);
}

#[test]
fn what_users_of_redis_expect_is_refused_with_what_to_use_instead() {
    let server = Running::plain();
    let mut client = server.connect();
    for command in ["GET k", "set k v", "INCR k", "EXPIRE k 60"] {
        let reply = client.call(command);
        let name = command.split(' ').next().unwrap();
        assert!(reply.starts_with(&format!("-ERR unknown command '{name}'. ")), "{reply}");
        assert!(reply.contains("FG.LIMIT and CL.THROTTLE") && reply.contains("second client"), "{reply}");
    }
    for command in ["EVAL x 0", "evalsha x 0", "SCRIPT LOAD x", "FCALL f 0"] {
        let reply = client.call(command);
        assert!(reply.contains("no scripts") && reply.contains("CL.THROTTLE"), "{reply}");
    }
    for (commands, instead) in [
        (&["KEYS *", "scan 0", "RANDOMKEY"][..], "DBSIZE"),
        (&["FLUSHALL", "flushdb", "UNLINK k"], "DEL for keys"),
        (&["TYPE k", "OBJECT ENCODING k", "RENAME a b"], "keeps no values"),
        (&["MONITOR", "SUBSCRIBE c", "SLOWLOG GET"], "log.denials"),
        (&["SAVE", "BGSAVE", "SHUTDOWN", "ACL LIST"], "store.durable"),
    ] {
        for command in commands {
            let reply = client.call(command);
            let name = command.split(' ').next().unwrap();
            assert!(reply.starts_with(&format!("-ERR unknown command '{name}'. ")), "{reply}");
            assert!(reply.contains(instead), "{reply}");
        }
    }
    // What is named instead is there.
    assert_eq!([client.call("DBSIZE"), client.call("TTL k"), client.call("DEL k")], ["0", "-2", "0"]);
    // A command that nobody expects is refused in Redis's words.
    assert_eq!(client.call("NOSUCH a"), "-ERR unknown command 'NOSUCH', with args beginning with: 'a' ");
}

#[test]
fn a_client_names_itself_as_it_greets() {
    let server = Running::start(locked(), "");
    let mut client = server.connect();
    assert!(client.call("HELLO 3 SETNAME me AUTH default wrong").starts_with("-WRONGPASS"));
    assert!(client.call("HELLO 2 AUTH default sesame SETNAME me").contains("proto 2"));
    assert_eq!(client.call("CLIENT GETNAME"), "me");
    assert!(client.call("HELLO 3 SETNAME other FLY").starts_with("-ERR Syntax error in HELLO option 'FLY'"));
    assert_eq!(client.call("CLIENT GETNAME"), "me", "nothing changes unless all of it is right");
    let name = "x".repeat(257);
    assert_eq!(client.call(&format!("HELLO 2 SETNAME {name}")), "-ERR Client names have at most 256 bytes.");
    assert!(client.call(&format!("HELLO 2 SETNAME {}", &name[..256])).contains("proto 2"));
    assert_eq!(client.call_words(&[b"CLIENT", b"SETNAME", b""]), "OK");
    assert_eq!(client.call("CLIENT GETNAME"), "nil", "an empty name takes it away");
}
