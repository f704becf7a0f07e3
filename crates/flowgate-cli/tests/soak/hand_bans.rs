//! A ban by hand through a node whose clock is ahead lasts as long as it was asked for, on every node.

use std::thread::sleep;
use std::time::Duration;

use crate::node::WITH_CLOCK;
use crate::workload::{Asked, kind};
use crate::world::{NODES, World, peek};

const LENGTH: Duration = Duration::from_secs(3);

/// Every node must end the ban within this time after its end. A busy machine makes a node wait for less.
const LATE: Duration = Duration::from_secs(5);

/// How long a wall clock must be wrong before a node goes by it.
pub(crate) const FOLLOWED_AFTER: Duration = Duration::from_millis(3500);

/// Imposes a ban, and reports nodes that do not keep it.
pub(crate) fn impose(world: &mut World) {
    world.nodes[WITH_CLOCK].put_clock_forward();
    sleep(FOLLOWED_AFTER);
    let asked = Asked { kind: kind("sliding"), subject: world.random.next() as u32, fresh: None };
    let user = asked.fields().into_iter().find(|(name, _)| *name == "user").unwrap().1;
    let ban = serde_json::json!({ "field": "user", "value": user, "for": format!("{}s", LENGTH.as_secs()) });
    let sent = world.field.now();
    let answer = world.ask(WITH_CLOCK, "/v1/bans", &ban);
    let imposed = world.field.now();
    world.nodes[WITH_CLOCK].correct_clock();
    if answer.is_none() {
        world.complaints.push("a ban by hand is not answered".to_owned());
        return;
    }
    let (mut has_denied, mut has_let_go) = ([false; NODES], [false; NODES]);
    while world.field.now() < imposed + LENGTH + LATE && !has_let_go.iter().all(|has| *has) {
        for node in 0..NODES {
            let replies = world.ask(node, "/v1/batch", &serde_json::json!([peek(&asked)]));
            let Some(allowed) = replies.and_then(|replies| replies[0]["allowed"].as_bool()) else { continue };
            has_denied[node] |= !allowed;
            has_let_go[node] = allowed && world.field.now() > sent + LENGTH;
            if allowed && has_denied[node] && world.field.now() < sent + LENGTH {
                world.complaints.push(format!("node {node} lets go of a ban by hand too early"));
                return;
            }
        }
        sleep(Duration::from_millis(50));
    }
    for node in 0..NODES {
        if !has_denied[node] {
            world.complaints.push(format!("node {node} never knew of a ban by hand of {LENGTH:?}"));
        }
        if !has_let_go[node] {
            world.complaints.push(format!("node {node} holds a ban by hand {LATE:?} longer than {LENGTH:?}"));
        }
    }
}
