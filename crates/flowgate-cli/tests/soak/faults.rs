//! What goes wrong: each fault holds for a while and is then healed.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::proxy::Cut;
use crate::world::{NODES, World};

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
}

impl Fault {
    /// Faults of a single Redis server.
    pub(crate) const ONE_SERVER: [Fault; 10] = [
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
        }
    }

    /// Lets it happen for about `hold`, and heals it.
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
            Fault::RedisPaused => pause_redis(world, server, hold),
            // Longer than the timeout, shorter than the time after which a connection is given up.
            Fault::RedisPausedBriefly => pause_redis(world, server, world.timeout + Duration::from_millis(200)),
            Fault::RedisKilled => {
                world.servers[server].redis.kill();
                sleep(hold);
                world.servers[server].redis.up();
            }
            // Half of it in each direction, so a round trip takes from half the timeout to one and a half.
            Fault::RedisSlow => delay(world, world.timeout / 4..world.timeout * 3 / 4, hold),
            Fault::ConnectionsDelayed => delay(world, Duration::ZERO..world.timeout / 8, hold),
            Fault::ConnectionsCut => again_and_again(hold, || cut(world, Cut::AtOnce)),
            Fault::RepliesLost => again_and_again(hold, || cut(world, Cut::WithNextReply)),
            Fault::ScriptsFlushed => again_and_again(hold, || {
                for server in &world.servers {
                    server.redis.cli(&["SCRIPT", "FLUSH"]);
                }
            }),
        }
    }
}

fn pause_redis(world: &World, server: usize, hold: Duration) {
    world.servers[server].redis.stop();
    sleep(hold);
    world.servers[server].redis.go_on();
}

fn delay(world: &World, range: std::ops::Range<Duration>, hold: Duration) {
    world.servers.iter().for_each(|server| server.proxy.delay(Some(range.clone())));
    sleep(hold);
    world.servers.iter().for_each(|server| server.proxy.delay(None));
}

fn cut(world: &World, cut: Cut) {
    world.servers.iter().for_each(|server| server.proxy.cut(cut));
}

/// How often what takes no time happens while a fault holds.
const AGAIN: Duration = Duration::from_millis(100);

fn again_and_again(hold: Duration, happen: impl Fn()) {
    let started = Instant::now();
    while started.elapsed() < hold {
        happen();
        sleep(AGAIN);
    }
}
