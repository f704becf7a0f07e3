//! Bans that all nodes share: by hand and by rules.

use flowgate::{Op, Span, Time};
use flowgate_engine::redis::{BanCall, BanResult, ScriptCall, SharedBans};
use flowgate_engine::{BanOrder, DecidedBy, MAX_BANS, Request};

use crate::script::redis_server::RedisServer;
use crate::script::store::{PREFIX, RedisEngine, eval};
use crate::script::{Written, at, rule};

/// A node, with the version of the bans that it knows.
struct Node {
    redis: RedisEngine,
    known: String,
}

impl Node {
    fn new(server: &RedisServer) -> Node {
        Node { redis: RedisEngine::new(&[], server.connect()), known: String::new() }
    }

    fn send(&mut self, call: impl FnOnce(BanCall<'_>) -> ScriptCall, now: Time) -> SharedBans {
        let call = call(BanCall { prefix: PREFIX, known: &self.known });
        let reply: Vec<Vec<u8>> = eval(&mut self.redis.connection, &call);
        let shared = SharedBans::read(&self.known, &reply).unwrap();
        self.redis.engine.adopt_bans(&shared, now);
        self.known.clone_from(&shared.version);
        shared
    }

    fn refresh(&mut self, now: Time) -> SharedBans {
        self.send(|call| call.refresh(), now)
    }

    fn ban(&mut self, value: &str, seconds: u64, now: Time) -> BanResult {
        let order = BanOrder { field: "ip", value, length: Span::from_secs(seconds), reason: "a, b: c" };
        self.send(|call| call.impose(order, now).unwrap(), now).result
    }

    fn banned(&mut self, ip: &str, now: Time) -> Option<Time> {
        let decision = self.redis.decide(Op::Take, &Request::new().field("ip", ip), now);
        assert_eq!(decision.banned_until.is_some(), decision.decided_by == DecidedBy::ManualBan);
        decision.banned_until
    }
}

#[test]
fn a_ban_by_hand_is_known_to_all_once_they_ask() {
    let server = RedisServer::start();
    let [mut one, mut two] = [Node::new(&server), Node::new(&server)];
    assert_eq!(two.refresh(at(0)).bans, Some(vec![]));
    assert_eq!(two.refresh(at(0)).bans, None, "nothing new");
    assert_eq!(one.ban("10.0.0.0/8", 60, at(0)), BanResult::Done(1));
    assert_eq!(one.banned("10.1.2.3", at(0)), Some(at(60)), "at once where it was imposed");
    assert_eq!(two.banned("10.1.2.3", at(0)), None);
    let found = two.refresh(at(1)).bans.unwrap();
    assert_eq!((&*found[0].value, &*found[0].reason), ("10.0.0.0/8", "a, b: c"));
    assert_eq!(two.banned("10.1.2.3", at(1)), Some(at(60)));
    // The same network, written otherwise: one ban takes the place of the other.
    assert_eq!(two.ban("10.9.9.9/8", 600, at(2)), BanResult::Done(2));
    assert_eq!(one.refresh(at(2)).bans.unwrap().len(), 1);
    assert_eq!(one.banned("10.1.2.3", at(2)), Some(at(602)));
    let bans = one.redis.engine.bans(at(3));
    assert_eq!(one.send(|call| call.lift(bans.iter().map(|ban| &**ban)), at(3)).result, BanResult::Done(1));
    assert_eq!(one.banned("10.1.2.3", at(3)), None);
    two.refresh(at(3));
    assert_eq!(two.banned("10.1.2.3", at(3)), None);
    assert_eq!(one.send(|call| call.lift(bans.iter().map(|ban| &**ban)), at(3)).result, BanResult::Done(0));
    let left: i64 = redis::cmd("PTTL").arg("fg:{bans}").query(&mut one.redis.connection).unwrap();
    assert!(left > 0, "the table goes when it is of no use");
}

#[test]
fn there_are_only_so_many_and_what_has_ended_makes_room() {
    let server = RedisServer::start();
    let mut node = Node::new(&server);
    let mut fill = redis::pipe();
    for user in 0..MAX_BANS {
        let until = at(60).as_nanos();
        let text = format!("{} {} {until} 4:user {}:{user} 0:", user + 1, until / 1_000_000, user.to_string().len());
        fill.cmd("HSET").arg("fg:{bans}").arg(format!("4:user={user}")).arg(text).ignore();
    }
    fill.cmd("HSET").arg("fg:{bans}").arg("v").arg(5).arg("i").arg(MAX_BANS).ignore();
    fill.query::<()>(&mut node.redis.connection).unwrap();
    assert_eq!(node.ban("::1", 60, at(0)), BanResult::Full);
    assert_eq!(node.redis.engine.bans(at(0)).len(), MAX_BANS);
    assert_eq!(node.ban("::1", 60, at(60)), BanResult::Done(MAX_BANS as u64 + 1));
    assert_eq!(node.redis.engine.bans(at(60)).len(), 1);
}

#[test]
fn a_ban_by_a_rule_is_in_force_on_every_node_and_can_be_lifted() {
    let server = RedisServer::start();
    let rules = [rule("reply").by("user").limits(&["1/1s"]).ban(2, 100, &[50], 0)];
    let mut one = RedisEngine::new(&rules, server.connect());
    let mut two = RedisEngine::new(&rules, server.connect());
    let request = Request::new().field("user", "4 2");
    one.decide(Op::Take, &request, at(0));
    assert_eq!(two.decide(Op::Take, &request, at(0)).banned_until, None);
    assert_eq!(one.decide(Op::Take, &request, at(0)).banned_until, Some(at(50)));
    let denied = two.decide(Op::Take, &request, at(5));
    assert_eq!((denied.decided_by, denied.banned_until), (DecidedBy::Ban, Some(at(50))));
    let bans = one.engine.rule_bans(at(5));
    assert_eq!(bans.len(), 1);
    assert_eq!(bans[0].subject, [("user".to_owned(), "4 2".to_owned())]);
    let key = one.engine.take_rule_ban(bans[0].id, at(5)).unwrap();
    let key = [PREFIX.as_bytes(), &key].concat();
    assert_eq!(key, b"fg:{s:user=4%202}:reply:ban");
    assert_eq!(redis::cmd("DEL").arg(key).query::<usize>(&mut one.connection).unwrap(), 1);
    assert!(two.decide(Op::Take, &request, at(5)).allowed());
    assert!(one.engine.rule_bans(at(5)).is_empty());
}
