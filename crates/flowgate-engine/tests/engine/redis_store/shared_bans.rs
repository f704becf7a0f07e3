//! Bans that all nodes share: by hand and by rules.

use flowgate::{Op, Span, Time};
use flowgate_engine::redis::{BanCall, BanCopy, ScriptCall, ScriptTime};
use flowgate_engine::{
    DecidedBy, Request,
    bans::{BanId, BanOrder, BanOrderError, MAX_BANS, ManualBan},
};
use flowgate_testkit::redis::Redis;

use crate::redis_engine::{PREFIX, Prepare, RedisEngine, eval};
use crate::script::{Written, at, rule};

/// A node, and its copy of the bans.
struct Node {
    redis: RedisEngine,
    copy: BanCopy,
}

impl Node {
    fn new(server: &Redis) -> Node {
        Node { redis: RedisEngine::new(&[], server.connect()), copy: BanCopy::default() }
    }

    fn call(now: Time) -> BanCall<'static> {
        BanCall { prefix: PREFIX, time: ScriptTime::Injected(now) }
    }

    fn send(&mut self, call: &ScriptCall) -> Vec<Vec<u8>> {
        eval(&mut self.redis.connection, call)
    }

    /// Reads what has changed; the number of replies that it took.
    fn refresh(&mut self, now: Time) -> usize {
        for replies in 1.. {
            let reply = self.send(&Node::call(now).read(&self.copy));
            if !self.copy.take_page(&self.redis.engine, &reply).unwrap() {
                return replies;
            }
        }
        unreachable!()
    }

    fn impose(&mut self, order: BanOrder<'_>, now: Time) -> Result<ManualBan, BanOrderError> {
        let id = self.redis.engine.next_manual_ban_id();
        let reply = self.send(&Node::call(now).impose(order, id)?);
        self.take_imposed(order, id, &reply)
    }

    fn take_imposed(&mut self, order: BanOrder<'_>, id: BanId, reply: &[Vec<u8>]) -> Result<ManualBan, BanOrderError> {
        let imposed = self.copy.take_imposed(&self.redis.engine, order, id, reply).unwrap();
        imposed.map(|ban| ManualBan::clone(&ban))
    }

    fn ban(&mut self, value: &str, seconds: u64, now: Time) -> BanId {
        self.impose(order("ip", value, seconds), now).unwrap().id
    }

    fn lift(&mut self, value: &str, id: Option<BanId>, now: Time) -> bool {
        let reply = self.send(&Node::call(now).lift("ip", value, id).unwrap());
        self.copy.take_lifted(&self.redis.engine, ("ip", value), &reply).unwrap()
    }

    /// The end of the ban, and how long it still takes.
    fn banned(&mut self, ip: &str, now: Time) -> Option<(Time, Span)> {
        let request = Request::new().field("ip", ip);
        let decision = self.redis.engine.prepare(Op::Take, &request, now).at_once(now)?;
        assert_eq!(decision.banned_until().is_some(), matches!(&decision.decided_by, DecidedBy::ManualBan(_)));
        Some((decision.banned_until()?, decision.retry_after()?))
    }

    fn number(&self, now: Time) -> usize {
        assert_eq!(self.redis.engine.bans(now).len(), self.redis.engine.number_of_bans(now));
        self.redis.engine.number_of_bans(now)
    }
}

fn order<'a>(field: &'a str, value: &'a str, seconds: u64) -> BanOrder<'a> {
    BanOrder { field, value, length: Span::from_secs(seconds), reason: "a, b: c", author: None }
}

fn lasts(end: u64, seconds: u64) -> Option<(Time, Span)> {
    Some((at(end), Span::from_secs(seconds)))
}

#[test]
fn a_ban_by_hand_is_known_to_all_once_they_ask() {
    let server = Redis::start();
    let [mut one, mut two] = [Node::new(&server), Node::new(&server)];
    two.refresh(at(0));
    one.ban("10.0.0.0/8", 60, at(0));
    assert_eq!(one.banned("10.1.2.3", at(0)), lasts(60, 60), "at once where it was imposed");
    assert_eq!(one.copy.redis_time, at(0));
    assert_eq!(two.banned("10.1.2.3", at(0)), None);
    two.refresh(at(1));
    let found = two.redis.engine.bans(at(1));
    assert_eq!((&*found[0].value, &*found[0].reason), ("10.0.0.0/8", "a, b: c"));
    assert_eq!(two.banned("10.1.2.3", at(1)), lasts(60, 59));
    // The same network, written in another way: one ban takes the place of the other.
    let second = two.ban("10.9.9.9/8", 600, at(2));
    one.refresh(at(2));
    assert_eq!((one.number(at(2)), one.banned("10.1.2.3", at(2))), (1, lasts(602, 600)));
    assert!(!one.lift("10.0.0.0/8", Some(found[0].id), at(3)), "the id is of the ban that was replaced");
    assert!(one.lift("10.0.0.0/8", Some(second), at(3)) && !one.lift("10.0.0.0/8", None, at(3)));
    assert_eq!(one.banned("10.1.2.3", at(3)), None);
    two.refresh(at(3));
    assert_eq!(two.banned("10.1.2.3", at(3)), None);
    for key in ["fg:{bans}", "fg:{bans}:lifted"] {
        let left: i64 = redis::cmd("PTTL").arg(key).query(&mut one.redis.connection).unwrap();
        assert!(left > 0, "{key} goes after the last ban has ended");
    }
}

#[test]
fn the_number_and_the_texts_are_bounded_and_bans_that_have_ended_make_room() {
    let server = Redis::start();
    let mut node = Node::new(&server);
    let fill = |node: &mut Node, number: usize, reason: usize| {
        let mut pipe = redis::pipe();
        pipe.cmd("DEL").arg("fg:{bans}").ignore();
        for user in 0..number {
            let (name, end) = (format!("4:user={user}"), at(60).as_nanos() / 1000);
            let text = format!("4:user {}:{user} {reason}:{} ", user.to_string().len(), "x".repeat(reason));
            let text = format!("{} {end} h-000000000a-{user} {text}", 10 + reason);
            pipe.cmd("HSET").arg("fg:{bans}").arg(&name).arg(text).ignore();
            pipe.cmd("ZADD").arg("fg:{bans}:order").arg(user + 1).arg(&name).ignore();
            pipe.cmd("ZADD").arg("fg:{bans}:ends").arg(end).arg(&name).ignore();
        }
        let bytes = number * (10 + reason);
        let meta = [("epoch", "e".to_owned()), ("version", number.to_string()), ("bytes", bytes.to_string())];
        meta.iter().for_each(|(name, value)| _ = pipe.cmd("HSET").arg("fg:{bans}").arg(name).arg(value).ignore());
        pipe.query::<()>(&mut node.redis.connection).unwrap();
    };
    fill(&mut node, MAX_BANS, 0);
    assert_eq!(node.impose(order("ip", "::1", 60), at(0)), Err(BanOrderError::Full));
    assert!(node.refresh(at(0)) > MAX_BANS / 256, "in pages");
    assert_eq!(node.number(at(0)), MAX_BANS);
    assert!(node.impose(order("user", "42", 90), at(0)).is_ok(), "one in place of another");
    node.ban("::1", 60, at(60));
    assert_eq!(node.number(at(60)), 2, "the new one, and the one in place of another");
    let kept: usize = redis::cmd("ZCARD").arg("fg:{bans}:order").query(&mut node.redis.connection).unwrap();
    assert!((MAX_BANS - 20..MAX_BANS).contains(&kept), "a change drops a few: {kept} are left");

    let server = Redis::start();
    let mut node = Node::new(&server);
    fill(&mut node, 8300, 1000);
    let long = "y".repeat(1024);
    let names: Vec<String> = (0..100).map(|number| format!("new{number}")).collect();
    let user = |value| BanOrder { field: "user", value, length: Span::from_secs(60), reason: &long, author: None };
    let imposed = names.iter().take_while(|name| node.impose(user(name), at(0)).is_ok()).count();
    assert!((1..20).contains(&imposed), "{imposed}");
    assert_eq!(node.impose(user("more"), at(0)), Err(BanOrderError::TooMuchText));
    assert!(node.impose(user("more"), at(60)).is_ok());
}

#[test]
fn a_copy_is_right_in_whatever_order_replies_arrive() {
    let server = Redis::start();
    let [mut one, mut two] = [Node::new(&server), Node::new(&server)];
    one.ban("10.0.0.1", 60, at(0));
    one.refresh(at(0));
    // A page that was asked for before the node's own changes arrives after them.
    let early = one.send(&Node::call(at(0)).read(&one.copy));
    two.ban("10.0.0.2", 60, at(0));
    let between = one.send(&Node::call(at(0)).read(&one.copy));
    assert!(one.lift("10.0.0.1", None, at(0)));
    one.ban("10.0.0.3", 60, at(0));
    for page in [&early, &between] {
        assert!(!one.copy.take_page(&one.redis.engine, page).unwrap());
        assert_eq!(one.banned("10.0.0.1", at(0)), None, "lifted through this node");
        assert!(one.banned("10.0.0.3", at(0)).is_some(), "banned through this node");
    }
    assert!(one.banned("10.0.0.2", at(0)).is_some());
    // Two changes of one target: the first reply arrives last.
    let orders = [order("ip", "10.0.0.4", 60), order("ip", "10.0.0.4", 90)];
    let ids = orders.map(|_| one.redis.engine.next_manual_ban_id());
    let replies = [0, 1].map(|at_| one.send(&Node::call(at(0)).impose(orders[at_], ids[at_]).unwrap()));
    for which in [1, 0] {
        one.take_imposed(orders[which], ids[which], &replies[which]).unwrap();
        assert_eq!(one.banned("10.0.0.4", at(0)), lasts(90, 90));
    }
    one.refresh(at(0));
    two.refresh(at(0));
    let addresses = |node: &Node| -> Vec<String> {
        let mut values: Vec<_> = node.redis.engine.bans(at(0)).iter().map(|ban| ban.value.to_string()).collect();
        values.sort();
        values
    };
    assert_eq!(addresses(&one), ["10.0.0.2", "10.0.0.3", "10.0.0.4"]);
    assert_eq!(addresses(&one), addresses(&two));
}

#[test]
fn a_copy_follows_a_table_that_was_lost_and_one_that_has_changed_a_lot() {
    let server = Redis::start();
    let [mut one, mut two] = [Node::new(&server), Node::new(&server)];
    one.ban("10.0.0.1", 60, at(0));
    one.ban("10.0.0.2", 60, at(0));
    two.refresh(at(0));
    redis::cmd("FLUSHALL").query::<()>(&mut one.redis.connection).unwrap();
    one.ban("10.0.0.3", 60, at(0));
    one.ban("10.0.0.4", 60, at(0));
    for node in [&mut one, &mut two] {
        node.refresh(at(0));
        let found = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"].map(|ip| node.banned(ip, at(0)).is_some());
        assert_eq!(found, [false, false, true, true]);
    }
    // More are lifted than Redis remembers.
    assert!(one.lift("10.0.0.3", None, at(0)));
    for number in 0..2100 {
        let value = format!("10.1.{}.{}", number >> 8, number & 255);
        one.ban(&value, 60, at(0));
        assert!(one.lift(&value, None, at(0)));
    }
    let remembered: usize = redis::cmd("ZCARD").arg("fg:{bans}:lifted").query(&mut one.redis.connection).unwrap();
    assert!(remembered <= 2000, "{remembered}");
    for node in [&mut one, &mut two] {
        node.refresh(at(0));
        assert_eq!((node.number(at(0)), node.banned("10.0.0.3", at(0))), (1, None));
    }
}

/// As after a failover to a replica that had not got the last changes, or a restart from a snapshot.
#[test]
fn a_copy_follows_a_table_that_has_lost_its_last_changes() {
    const KEYS: [&str; 3] = ["fg:{bans}", "fg:{bans}:order", "fg:{bans}:ends"];
    let server = Redis::start();
    let [mut one, mut two] = [Node::new(&server), Node::new(&server)];
    one.ban("10.0.0.1", 60, at(0));
    let dump = |key: &str| redis::cmd("DUMP").arg(key).query::<Vec<u8>>(&mut server.connect()).unwrap();
    let kept = KEYS.map(dump);
    let put_back = || {
        for (key, value) in KEYS.iter().zip(&kept) {
            let mut restore = redis::cmd("RESTORE");
            restore.arg(key).arg(3_600_000).arg(value).arg("REPLACE");
            restore.query::<()>(&mut server.connect()).unwrap();
        }
    };
    let found = |node: &mut Node, now| ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|ip| node.banned(ip, now).is_some());
    one.ban("10.0.0.2", 60, at(1));
    one.ban("10.0.0.4", 60, at(1));
    two.refresh(at(2));
    put_back();
    two.refresh(at(3));
    assert_eq!(found(&mut two, at(3)), [true, false, false], "what is lost is lost everywhere");
    one.ban("10.0.0.3", 60, at(4));
    assert!(found(&mut one, at(4))[2], "at once where it was imposed");
    one.ban("10.0.0.2", 60, at(5));
    for node in [&mut one, &mut two] {
        node.refresh(at(6));
        assert_eq!(found(node, at(6)), [true, true, true]);
    }
    // Before another change, the nodes that have imposed what is lost see that, too.
    put_back();
    one.refresh(at(7));
    assert_eq!(found(&mut one, at(7)), [true, false, false]);
}

/// Another program's values; and the empty texts that a node puts under missing keys while their slot moves.
#[test]
fn keys_of_another_type_count_as_absent() {
    let server = Redis::start();
    let [mut one, mut two] = [Node::new(&server), Node::new(&server)];
    let spoilt = ["", ":order", ":ends", ":lifted"].map(|tail| (tail, "text"));
    for (number, (tail, value)) in spoilt.into_iter().chain([("", ""), (":lifted", "")]).enumerate() {
        let connection = &mut one.redis.connection;
        let mut set = redis::cmd("SET");
        set.arg(format!("fg:{{bans}}{tail}")).arg(value);
        if value.is_empty() {
            set.arg("NX");
        }
        set.query::<Option<String>>(connection).unwrap();
        let values = [1, 2].map(|host| format!("10.0.{number}.{host}"));
        values.iter().for_each(|value| _ = one.ban(value, 60, at(0)));
        redis::cmd("SET")
            .arg("fg:{bans}:lifted")
            .arg("")
            .arg("NX")
            .query::<Option<String>>(&mut one.redis.connection)
            .unwrap();
        assert!(one.lift(&values[0], None, at(0)));
        for node in [&mut one, &mut two] {
            node.refresh(at(0));
            let banned = values.each_ref().map(|value| node.banned(value, at(0)).is_some());
            assert_eq!(banned, [false, true], "{tail} = {value:?}");
        }
        assert_eq!(one.number(at(0)), two.number(at(0)), "{tail} = {value:?}");
    }
}

/// The commands that Redis carries out for one change are a measure of its cost.
#[test]
fn a_change_costs_redis_and_the_node_the_same_for_any_number_of_bans() {
    let server = Redis::start();
    let mut node = Node::new(&server);
    node.ban("10.0.0.1", 60, at(0));
    let of_one_change = |node: &mut Node| {
        redis::cmd("CONFIG").arg("RESETSTAT").query::<()>(&mut node.redis.connection).unwrap();
        node.ban("192.0.2.1", 60, at(0));
        assert!(node.lift("192.0.2.1", None, at(0)));
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut node.redis.connection).unwrap();
        assert!(!stats.contains("cmdstat_hgetall"), "{stats}");
        let calls = |line: &str| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok();
        stats.lines().filter_map(calls).sum::<u64>()
    };
    let few = of_one_change(&mut node);
    for number in 0..3000 {
        node.ban(&format!("10.{}.{}.7", 1 + (number >> 8), number & 255), 60, at(0));
    }
    assert_eq!(of_one_change(&mut node), few);
}

#[test]
fn a_ban_by_a_rule_is_in_force_on_every_node_and_can_be_lifted() {
    let server = Redis::start();
    let rules = [rule("reply").by("user").limits(&["1/1s"]).ban(2, 100, &[50], 0)];
    let mut one = RedisEngine::new(&rules, server.connect());
    let mut two = RedisEngine::new(&rules, server.connect());
    let request = Request::new().field("user", "4 2");
    one.decide(Op::Take, &request, at(0));
    assert_eq!(two.decide(Op::Take, &request, at(0)).banned_until(), None);
    assert_eq!(one.decide(Op::Take, &request, at(0)).banned_until(), Some(at(50)));
    let denied = two.decide(Op::Take, &request, at(5));
    assert!(matches!(&denied.decided_by, DecidedBy::Ban { .. }));
    assert_eq!(denied.banned_until(), Some(at(50)));
    let bans = one.engine.rule_bans(at(5));
    assert_eq!(bans.len(), 1);
    assert_eq!(bans[0].subject, [("user".to_owned(), "4 2".to_owned())]);
    let lift = |node: &RedisEngine| node.engine.rule_ban_call(bans[0].id, PREFIX, ScriptTime::Injected(at(5)), at(5));
    let call = lift(&one).unwrap();
    assert_eq!(call.keys().collect::<Vec<_>>(), [b"fg:{s:user=4%202}:2"]);
    assert_eq!([(); 2].map(|()| eval::<i64>(&mut one.connection, &call)), [1, 0]);
    assert!(two.decide(Op::Take, &request, at(5)).allowed());
    one.engine.strike_rule_ban(bans[0].id, at(5));
    assert!(one.engine.rule_bans(at(5)).is_empty() && lift(&one).is_none());
}
