//! The soak: four nodes share a Redis while processes, connections and clocks fail, and clients check every promise.
//!
//! The short form runs with the tests. `scripts/soak` runs the long one, on a release build; see CONTRIBUTING.md.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod audit;
mod bans;
mod bounds;
mod client;
mod cluster;
mod exceptions;
mod faults;
mod hand_bans;
mod node;
mod proxy;
mod random;
mod report;
mod trace;
mod workload;
mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::faults::Fault;
use crate::report::{Run, Stage};
use crate::world::{Server, World};

const CLIENTS: usize = 60;

/// The times of a run.
struct Form {
    /// Each of the two runs causes faults until this time is over, and every fault at least once.
    each_run: Duration,
    quiet: Duration,
    fault: Duration,
    calm: Duration,
    /// The `timeout` of the store. On a machine that also builds and tests, Redis takes longer to answer.
    timeout: Duration,
    /// Whether the run judges times.
    is_long: bool,
}

impl Form {
    /// The long form if `SOAK_MINUTES` gives the length of all runs, else the short form.
    fn from_environment() -> Form {
        match std::env::var("SOAK_MINUTES") {
            Ok(minutes) => Form {
                each_run: Duration::from_secs(minutes.parse::<u64>().expect("SOAK_MINUTES: a whole number") * 60 / 2),
                quiet: Duration::from_secs(20),
                fault: Duration::from_secs(2),
                calm: Duration::from_secs(4),
                timeout: Duration::from_millis(50),
                is_long: true,
            },
            Err(_) => Form {
                each_run: Duration::ZERO,
                quiet: Duration::from_secs(1),
                fault: Duration::from_millis(600),
                calm: Duration::from_millis(300),
                timeout: Duration::from_millis(250),
                is_long: false,
            },
        }
    }
}

#[test]
fn no_fault_breaks_a_promise() {
    let form = Form::from_environment();
    let seed = std::env::var("SOAK_SEED").map_or(1, |seed| seed.parse().expect("SOAK_SEED: a whole number"));
    eprintln!("seed {seed}");
    let runtime = Runtime::new().unwrap();
    let mut wrong = Vec::new();
    for run in [on_one_server, on_a_cluster] {
        let run = run(&form, seed, &runtime);
        let (figures, violations) = run.report();
        eprintln!("{figures}");
        if violations.is_empty() {
            std::fs::remove_dir_all(&run.logs).unwrap();
        }
        wrong.extend(violations);
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
}

fn on_one_server(form: &Form, seed: u64, runtime: &Runtime) -> Run {
    let server = Server::start(seed, &[], runtime.handle());
    let store = format!("url = 'redis://127.0.0.1:{}'", server.proxy.port);
    let mut world = World::start(vec![server], &store, form.timeout, seed, runtime.handle());
    run("one Redis server", &Fault::ONE_SERVER, form, &mut world, runtime)
}

fn on_a_cluster(form: &Form, seed: u64, runtime: &Runtime) -> Run {
    let servers = cluster::start(seed, runtime.handle());
    let store = format!("cluster = ['redis://127.0.0.1:{}']", servers[1].proxy.port);
    let mut world = World::start(servers, &store, form.timeout, seed, runtime.handle());
    // On a cluster, faults of clocks run only in the long form, because a node takes some seconds to accept a changed
    // clock.
    let faults: Vec<Fault> = Fault::CLUSTER.into_iter().filter(|fault| form.is_long || !fault.is_of_clocks()).collect();
    run("a cluster of three masters and a replica", &faults, form, &mut world, runtime)
}

/// Causes all faults in turn while clients are at work, and checks the replies to the clients.
fn run(name: &'static str, faults: &[Fault], form: &Form, world: &mut World, runtime: &Runtime) -> Run {
    world.recovers();
    let seed = world.random.next();
    let clients: Vec<_> =
        (0..CLIENTS).map(|number| runtime.spawn(client::run(number, seed, Arc::clone(&world.field)))).collect();
    let started = Instant::now();
    let mut stages = vec![stage(None, world, form)];
    let mut round = faults.to_vec();
    loop {
        world.random.shuffle(&mut round);
        for &fault in &round {
            stages.push(stage(Some(fault), world, form));
        }
        if started.elapsed() >= form.each_run {
            break;
        }
    }
    world.field.stop.store(true, Relaxed);
    let records = runtime.block_on(async {
        let mut records = Vec::new();
        for client in clients {
            records.extend(client.await.unwrap());
        }
        records
    });
    let charged = runtime.block_on(audit::audit(world, &records));
    let complaints = world.complaints.clone();
    let (exceptions, logs) = (world.exceptions.clone(), world.directory.clone());
    Run { name, stages, records, charged, exceptions, complaints, logs, times_are_judged: form.is_long }
}

/// Causes a fault, if one is given, waits until all nodes are back, and then waits for a time without a fault.
fn stage(fault: Option<Fault>, world: &mut World, form: &Form) -> Stage {
    world.fault = fault;
    let from = world.field.now();
    if let Some(fault) = fault {
        fault.happens(world, form.fault);
    }
    let healed = world.field.now();
    world.recovers();
    let recovered = world.field.now();
    sleep(if fault.is_some() { form.calm } else { form.quiet });
    for node in &mut world.nodes {
        assert!(!node.has_ended(), "a node has ended by itself: {fault:?}");
    }
    Stage {
        fault,
        losses: fault.and_then(|fault| fault.losses(form.fault)),
        from,
        healed,
        recovered,
        to: world.field.now(),
    }
}
