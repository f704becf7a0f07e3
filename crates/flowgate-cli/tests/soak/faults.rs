//! The faults: each lasts for a while and is then healed.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

use flowgate_testkit::wait::eventually;

use crate::cluster;
use crate::exceptions::Whose;
use crate::hand_bans::{self, FOLLOWED_AFTER};
use crate::node::WITH_CLOCK;
use crate::proxy::Cut;
use crate::workload::{KINDS, Subjects, kind, user};
use crate::world::{NODES, Server, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    NodeKilled,
    NodePaused,
    RedisPaused,
    RedisPausedBriefly,
    RedisKilled,
    RedisSlow,
    ConnectionsDelayed,
    ConnectionsCut,
    RepliesLost,
    ScriptsFlushed,
    BadValue,
    ClockGlitch,
    ClockAhead,
    ClockBehind,
    BanByHand,
    SlotsMoved,
    MasterHandsOver,
    MasterKilled,
}

impl Fault {
    /// Faults of a single Redis server.
    pub(crate) const ONE_SERVER: [Fault; 15] = [
        Fault::NodeKilled,
        Fault::NodePaused,
        Fault::RedisPaused,
        Fault::RedisPausedBriefly,
        Fault::RedisKilled,
        Fault::RedisSlow,
        Fault::ConnectionsDelayed,
        Fault::ConnectionsCut,
        Fault::RepliesLost,
        Fault::ScriptsFlushed,
        Fault::BadValue,
        Fault::ClockGlitch,
        Fault::ClockAhead,
        Fault::ClockBehind,
        Fault::BanByHand,
    ];

    /// Faults of a cluster.
    pub(crate) const CLUSTER: [Fault; 14] = [
        Fault::NodeKilled,
        Fault::NodePaused,
        Fault::RedisPaused,
        Fault::RedisKilled,
        Fault::RedisSlow,
        Fault::ConnectionsCut,
        Fault::RepliesLost,
        Fault::ScriptsFlushed,
        Fault::BadValue,
        Fault::ClockAhead,
        Fault::BanByHand,
        Fault::SlotsMoved,
        Fault::MasterHandsOver,
        Fault::MasterKilled,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::NodeKilled => "node killed",
            Fault::NodePaused => "node paused",
            Fault::RedisPaused => "Redis paused",
            Fault::RedisPausedBriefly => "Redis paused briefly",
            Fault::RedisKilled => "Redis killed",
            Fault::RedisSlow => "Redis slow around the timeout",
            Fault::ConnectionsDelayed => "connections delayed",
            Fault::ConnectionsCut => "connections cut",
            Fault::RepliesLost => "replies lost",
            Fault::ScriptsFlushed => "scripts flushed",
            Fault::BadValue => "bad value",
            Fault::ClockGlitch => "clock ahead for a moment",
            Fault::ClockAhead => "clock ahead, then corrected",
            Fault::ClockBehind => "clock behind, then corrected",
            Fault::BanByHand => "ban by hand, clock ahead",
            Fault::SlotsMoved => "slots moved",
            Fault::MasterHandsOver => "master hands over",
            Fault::MasterKilled => "master killed and replaced",
        }
    }

    /// How often the fault cuts connections to a server that has carried out a command, or kills a node. Each time, the
    /// requests under way may stay charged. `None`: every reply arrives, maybe late, and no denied request stays
    /// charged.
    pub(crate) fn losses(self, hold: Duration) -> Option<usize> {
        match self {
            Fault::NodeKilled | Fault::RedisPaused | Fault::RedisKilled => Some(1),
            Fault::ClockAhead | Fault::MasterKilled | Fault::MasterHandsOver => Some(1),
            Fault::ConnectionsCut | Fault::RepliesLost => Some(hold.div_duration_f64(AGAIN).ceil() as usize),
            Fault::NodePaused | Fault::RedisPausedBriefly | Fault::RedisSlow | Fault::ConnectionsDelayed => None,
            Fault::ScriptsFlushed | Fault::BadValue | Fault::ClockGlitch | Fault::ClockBehind => None,
            Fault::BanByHand | Fault::SlotsMoved => None,
        }
    }

    /// Whether the store decides during the fault as it does without it.
    pub(crate) fn goes_unnoticed(self) -> bool {
        match self {
            Fault::NodePaused | Fault::ConnectionsDelayed | Fault::ScriptsFlushed => true,
            Fault::BadValue | Fault::ClockBehind | Fault::BanByHand | Fault::SlotsMoved => true,
            Fault::RedisPaused | Fault::RedisPausedBriefly | Fault::RedisKilled | Fault::RedisSlow => false,
            Fault::ConnectionsCut | Fault::RepliesLost | Fault::ClockGlitch | Fault::ClockAhead => false,
            Fault::MasterHandsOver | Fault::MasterKilled => false,
            // A node that has just started decides without a cluster until it knows the cluster's slots.
            Fault::NodeKilled => false,
        }
    }

    /// Whether the fault concerns a node's clock.
    pub(crate) fn is_of_clocks(self) -> bool {
        matches!(self, Fault::ClockGlitch | Fault::ClockAhead | Fault::ClockBehind | Fault::BanByHand)
    }

    /// Causes the fault for about `hold`, and heals it.
    pub(crate) fn happens(self, world: &mut World, hold: Duration) {
        let node = world.random.below(NODES);
        let server = world.random.below(world.servers.len());
        match self {
            Fault::NodeKilled => {
                world.nodes[node].kill();
                sleep(hold);
                world.nodes[node].start_again();
            }
            Fault::NodePaused => {
                world.nodes[node].pause();
                sleep(hold);
                world.nodes[node].go_on();
            }
            // Long enough for a connection to be given up, too short for a master to be replaced.
            Fault::RedisPaused => pause_redis(world, server, hold.max(world.timeout + Duration::from_secs(1))),
            // Longer than the timeout, shorter than the time after which a connection is given up.
            Fault::RedisPausedBriefly => pause_redis(world, server, world.timeout + Duration::from_millis(200)),
            Fault::RedisKilled => {
                world.servers[server].redis.kill();
                sleep(hold);
                world.servers[server].redis.up();
                // A master that comes back waits two seconds before it takes writes.
                let servers = &world.servers;
                let is_ok = |server: &Server| cluster::is_ok(&server.redis);
                eventually("the cluster is there", || servers.len() == 1 || servers.iter().all(is_ok));
            }
            // Half of the delay is added in each direction, so a round trip takes from half the timeout to one and a
            // half.
            Fault::RedisSlow => delay(world, world.timeout / 4..world.timeout * 3 / 4, hold),
            Fault::ConnectionsDelayed => delay(world, Duration::ZERO..world.timeout / 8, hold),
            Fault::ConnectionsCut => again_and_again(hold, || cut(world, Cut::AtOnce)),
            Fault::RepliesLost => again_and_again(hold, || cut(world, Cut::WithNextReply)),
            Fault::ScriptsFlushed => again_and_again(hold, || {
                for server in &world.servers {
                    server.redis.cli(&["SCRIPT", "FLUSH"]);
                }
            }),
            Fault::BadValue => spoil(world, hold),
            Fault::ClockGlitch => clock_ahead(world, server, Duration::from_millis(200)),
            Fault::ClockAhead => {
                let from = world.field.now();
                clock_ahead(world, server, hold.max(FOLLOWED_AFTER));
                world.excepts(Whose::Node(world.nodes[WITH_CLOCK].life()), from);
            }
            Fault::ClockBehind => {
                world.nodes[WITH_CLOCK].put_clock_back();
                sleep(hold);
                world.nodes[WITH_CLOCK].correct_clock();
            }
            Fault::BanByHand => hand_bans::impose(world),
            Fault::SlotsMoved => again_and_again(hold, || move_a_slot(world)),
            Fault::MasterHandsOver => hand_over(world),
            Fault::MasterKilled => replace_master(world),
        }
    }
}

fn pause_redis(world: &World, server: usize, hold: Duration) {
    world.servers[server].redis.pause();
    sleep(hold);
    world.servers[server].redis.resume();
}

fn delay(world: &World, range: std::ops::Range<Duration>, hold: Duration) {
    world.servers.iter().for_each(|server| server.proxy.delay(Some(range.clone())));
    sleep(hold);
    world.servers.iter().for_each(|server| server.proxy.delay(None));
}

fn cut(world: &World, cut: Cut) {
    world.servers.iter().for_each(|server| server.proxy.cut(cut));
}

/// A node's clock is ahead while a server is away, so the node's own counters see the step.
fn clock_ahead(world: &mut World, server: usize, hold: Duration) {
    world.servers[server].redis.pause();
    world.nodes[WITH_CLOCK].put_clock_forward();
    sleep(hold);
    world.nodes[WITH_CLOCK].correct_clock();
    world.servers[server].redis.resume();
}

/// Values that no script of ours writes: a letter without its numbers, nothing, text.
const BAD_VALUES: [&str; 4] = ["s", "", "garbage", "sxxxxxxxxyyyyyyyyzzzzzzzz"];

/// Overwrites a counter of a busy subject with unreadable values, again and again. Each time the counter starts anew.
fn spoil(world: &mut World, hold: Duration) {
    let whose = Whose::Subject { kind: kind("sliding"), subject: 0 };
    let key = format!("fg:{{s:user={}}}:2", user("sliding", 0));
    let server =
        if world.servers.len() == 1 { 0 } else { cluster::owner(&world.servers, cluster::slot(&world.servers, &key)) };
    for value in BAD_VALUES {
        let from = world.field.now();
        let reply = world.servers[server].redis.cli(&["SET", &key, value]);
        assert!(reply.contains("OK"), "{reply}");
        world.excepts(whose, from);
        sleep(hold / BAD_VALUES.len() as u32);
    }
}

/// Moves the slot of a busy subject.
fn move_a_slot(world: &mut World) {
    let hot: Vec<&str> =
        KINDS.iter().filter(|kind| matches!(kind.subjects, Subjects::Few(_))).map(|kind| kind.act).collect();
    let user = user(hot[world.random.below(hot.len())], 0);
    let slot = cluster::slot(&world.servers, &format!("{{s:user={user}}}"));
    let from = cluster::owner(&world.servers, slot);
    let masters: Vec<usize> = (0..world.servers.len())
        .filter(|&server| server != from && cluster::is_master(&world.servers[server].redis))
        .collect();
    cluster::move_slot(&world.servers, slot, from, masters[world.random.below(masters.len())]);
}

/// Lets a replica take over in order, so that it has all writes.
fn hand_over(world: &World) {
    let (_, replica) = cluster::master_and_replica(&world.servers);
    let replica = &world.servers[replica].redis;
    eventually("the replica has all data", || cluster::follows(replica));
    let asked = Cell::new(None::<Instant>);
    eventually("the replica takes over", || {
        // Masters refuse to vote soon after another failover. The replica then gives up.
        if asked.get().is_none_or(|asked| asked.elapsed() > GIVES_UP) {
            replica.cli(&["CLUSTER", "FAILOVER"]);
            asked.set(Some(Instant::now()));
        }
        cluster::is_master(replica)
    });
    follows_again(world);
}

/// A replica gives up to take over in order after this long.
const GIVES_UP: Duration = Duration::from_secs(5);

/// Kills a master. Its replica takes over, and the master comes back as a replica.
fn replace_master(world: &mut World) {
    let (master, replica) = cluster::master_and_replica(&world.servers);
    eventually("the replica has all data", || cluster::follows(&world.servers[replica].redis));
    let from = world.field.now().saturating_sub(REPLICATION_LAG);
    world.servers[master].redis.kill();
    let redis = &world.servers[replica].redis;
    eventually("the replica takes over", || cluster::is_master(redis) && cluster::is_ok(redis));
    world.excepts(Whose::Everybody, from);
    world.servers[master].redis.up();
    follows_again(world);
}

/// A connected replica lags behind its master by less than this.
const REPLICATION_LAG: Duration = Duration::from_millis(500);

fn follows_again(world: &World) {
    let servers = &world.servers;
    let replica = || servers.iter().find(|server| !cluster::is_master(&server.redis));
    eventually("the old master follows", || replica().is_some_and(|server| cluster::follows(&server.redis)));
}

/// The interval at which a short fault is repeated.
const AGAIN: Duration = Duration::from_millis(100);

fn again_and_again(hold: Duration, mut happen: impl FnMut()) {
    let started = Instant::now();
    while started.elapsed() < hold {
        happen();
        sleep(AGAIN);
    }
}
