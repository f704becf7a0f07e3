//! A pipeline gets the same answers as its commands one by one, whatever number of them is planned together.

use flowgate::{ManualClock, MemoryStore, Time};
use flowgate_engine::{Engine, Work};
use proptest::prelude::*;

use super::super::super::planned;
use super::*;

const RULES: &str = r#"
rule = [
  { name = "post", when = { act = "post" }, by = ["user"], limits = ["3/60s", "bucket 2/10s burst=5"] },
  { name = "all", when = { act = "post" }, limits = ["fixed 40/60s"] },
  { name = "login", when = { act = "login" }, by = ["ip"], limits = ["1/60s"], ban = { after = 2, within = "60s", for = ["60s"] } },
  { name = "watched", shadow = true, when = { user = "1" }, by = ["user"], limits = ["2/60s"] },
]"#;

fn connection() -> Connection<tokio::io::Empty> {
    let config = Config::from_toml(RULES).unwrap();
    let engine = Engine::new(&config.policy, MemoryStore::default()).unwrap();
    let service = Service::new(engine, ManualClock::new(Time::from_secs(1_700_000_000)).into());
    let shared = Arc::new(Shared { service, ..roomy() });
    Connection::new(tokio::io::empty(), session(&shared), Duration::from_secs(60))
}

/// The replies to commands that arrive together.
fn replies(connection: &mut Connection<tokio::io::Empty>, commands: &[Vec<&str>]) -> String {
    replies_to_parts(connection, &[&encode(commands)])
}

fn encode(commands: &[Vec<&str>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for words in commands {
        bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        words.iter().for_each(|word| bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes()));
    }
    bytes
}

/// The replies to bytes that arrive in parts.
fn replies_to_parts(connection: &mut Connection<tokio::io::Empty>, parts: &[&[u8]]) -> String {
    let mut said = String::new();
    for part in parts {
        connection.decoder.buffer().extend_from_slice(part);
        connection.dialogue.look_ahead(&connection.decoder);
        connection.answer();
        said += &String::from_utf8_lossy(connection.dialogue.unsent());
        connection.dialogue.sent(connection.dialogue.unsent().len());
        connection.dialogue.put_away();
    }
    said
}

fn command() -> impl Strategy<Value = Vec<&'static str>> {
    let user = prop::sample::select(vec!["1", "2", "3"]);
    let takes = prop_oneof![
        6 => user.clone().prop_map(|user| vec!["FG.TAKE", "1", "act", "post", "user", user]),
        2 => user.clone().prop_map(|ip| vec!["fg.take", "1", "act", "login", "ip", ip]),
        1 => user.clone().prop_map(|user| vec!["FG.TAKE", "2", "user", user, "act", "post"]),
        4 => user.clone().prop_map(|key| vec!["FG.LIMIT", key, "2/60s"]),
        1 => user.clone().prop_map(|key| vec!["FG.LIMIT", key, "bucket 2/60s"]),
        1 => user.clone().prop_map(|key| vec!["FG.LIMIT", key, "2/60s", "1", "PEEK"]),
        2 => user.clone().prop_map(|key| vec!["CL.THROTTLE", key, "1", "1", "60"]),
        1 => user.clone().prop_map(|key| vec!["CL.THROTTLE", key, "2", "1", "60"]),
        1 => user.clone().prop_map(|key| vec!["CL.THROTTLE", key, "2", "1", "60", "2"]),
        1 => user.prop_map(|key| vec!["CL.THROTTLE", key, "999999999", "1000", "3600", "1000000"]),
    ];
    let others = prop::sample::select(vec![
        vec!["FG.TAKE", "x", "user", "1"],
        vec!["FG.TAKE", "1", "user"],
        vec!["FG.LIMIT", "1", "2/x"],
        vec!["CL.THROTTLE", "1", "1", "x", "60"],
        vec!["CL.THROTTLE", "1"],
        vec!["CL.THROTTLE", "1", "9223372036854775807", "9223372036854775807", "1"],
        vec!["CL.THROTTLE", "1", "-1", "1", "60"],
        vec!["PING"],
        vec!["MULTI"],
        vec!["EXEC"],
        vec!["SELECT", "1"],
        vec!["SELECT", "0"],
        vec!["FG.BAN", "user", "2", "60"],
        vec!["FG.UNBAN", "user", "2"],
    ]);
    prop_oneof![6 => takes, 1 => others]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    /// The last byte of a command that is alone comes late. Such a command is not planned: it has been read in part.
    #[test]
    fn a_pipeline_is_answered_as_its_commands_one_by_one(
        batches in prop::collection::vec((prop::collection::vec(command(), 1..60), any::<prop::sample::Index>()), 1..4)
    ) {
        let (mut together, mut alone) = (connection(), connection());
        for (batch, cut) in batches {
            let mut expected = String::new();
            for one in batch.chunks(1).map(encode) {
                expected += &replies_to_parts(&mut alone, &[&one[..one.len() - 1], &one[one.len() - 1..]]);
            }
            let bytes = encode(&batch);
            let (first, rest) = bytes.split_at(cut.index(bytes.len()));
            prop_assert_eq!(replies_to_parts(&mut together, &[first, rest]), expected);
        }
    }
}

#[test]
fn commands_of_a_pipeline_are_planned_together() {
    let mut connection = connection();
    let take = vec!["FG.TAKE", "1", "act", "post", "user", "1"];
    assert_eq!(replies(&mut connection, &vec![take; 40]).matches("\r\n*8").count(), 39);
    assert!(connection.dialogue.plans());
    connection.decoder.buffer().extend_from_slice(b"*4\r\n$7\r\nFG.TAKE\r\n$1\r\n1\r\n$4\r\nuser\r\n$1\r\n1\r\n");
    let session = &connection.dialogue.session;
    let snapshot = session.shared.service.snapshot();
    planned::with_memory(|memory| {
        let group = planned::Group::plan(memory, &connection.decoder, session, &snapshot, None);
        assert_eq!(group.commands().len(), 1);
    });
}

#[test]
fn a_ban_by_hand_leaves_each_command_evaluated_once() {
    let mut connection = connection();
    let take = |user| vec!["FG.TAKE", "1", "act", "post", "user", user];
    replies(&mut connection, &[vec!["FG.BAN", "user", "2", "60"], take("1")]);
    let before = Work::done().evaluations;
    let commands: Vec<_> = ["1", "2", "3", "2"].repeat(16).into_iter().map(take).collect();
    let said = replies(&mut connection, &commands);
    assert_eq!(said.matches("*8\r\n").count(), 64);
    assert_eq!(Work::done().evaluations - before, 64);
}

#[test]
fn mistakes_in_limits_leave_each_command_evaluated_once() {
    let mut connection = connection();
    let take = vec!["FG.TAKE", "1", "act", "post", "user", "1"];
    let commands = [take.clone(), vec!["FG.LIMIT", "k", "2/x"], take, vec!["FG.LIMIT", "k", "2/60s"]];
    replies(&mut connection, &[vec!["CL.THROTTLE", "k", "1", "1", "60"], commands[0].clone()]);
    let before = Work::done().evaluations;
    let said = replies(&mut connection, &std::iter::repeat_n(commands, 16).flatten().collect::<Vec<_>>());
    assert_eq!((said.matches("*8\r\n").count(), said.matches("\r\n-").count()), (32, 32));
    assert_eq!(Work::done().evaluations - before, 32);
}

#[test]
fn a_planned_command_is_decided_by_the_rules_in_force() {
    let mut connection = connection();
    let take = vec!["FG.TAKE", "1", "act", "post", "user", "1"];
    replies(&mut connection, std::slice::from_ref(&take));
    let service = connection.dialogue.session.shared.service.clone();
    connection
        .decoder
        .buffer()
        .extend_from_slice(b"*6\r\n$7\r\nFG.TAKE\r\n$1\r\n1\r\n$3\r\nact\r\n$4\r\npost\r\n$4\r\nuser\r\n$1\r\n1\r\n");
    connection.dialogue.look_ahead(&connection.decoder);
    let denies = Config::from_toml(r#"rule = [{ name = "none", action = "deny" }]"#).unwrap();
    service.replace(&denies.policy).unwrap();
    connection.answer();
    let said = String::from_utf8_lossy(connection.dialogue.unsent()).into_owned();
    assert!(said.starts_with("*8\r\n:0\r\n"), "{said}");
    assert!(said.contains("none"), "{said}");
}

#[tokio::test]
async fn a_planned_command_is_answered_behind_a_reply_that_waits_for_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config::from_toml("store = { durable = \"everysec\" }").unwrap();
    let service = Service::open(&config, Some(directory.path())).unwrap();
    let shared = Arc::new(Shared { service, ..roomy() });
    let (_trigger, shutdown) = Shutdown::new();
    let mut client = connect(&shared, &shutdown);
    // A command that can be planned tells the connection to plan the next ones.
    let commands = "FG.UNBAN user 2\r\nFG.LIMIT a 9/1h\r\n".to_owned()
        + &"*3\r\n$8\r\nFG.LIMIT\r\n$1\r\na\r\n$4\r\n9/1h\r\n".repeat(3);
    client.write_all(commands.as_bytes()).await.unwrap();
    let mut first = [0; 4];
    client.read_exact(&mut first).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&first), ":0\r\n", "the reply to FG.UNBAN is the first");
}
