//! What clients ask for: the rules of all nodes, what each promises, and the next request of a client.
//!
//! Kinds with a bound have few subjects and far more requests than they admit. Kinds without one have a subject for
//! each request, of a limit that is never reached: such a subject tells exactly how often its request was charged.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::bounds::Bound;
use crate::random::Random;

/// A kind of request. The field `act` names it.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) act: &'static str,
    /// Limits of the rule of the same name, which counts by `user`.
    limits: &'static str,
    /// Further keys of the rule.
    more: &'static str,
    pub(crate) subjects: Subjects,
    /// The bound that the shared store promises for each subject.
    pub(crate) bound: Option<Bound>,
    /// The bound that each node promises for each subject while the store is away; `None`: it admits nothing.
    pub(crate) share: Option<Bound>,
}

impl Kind {
    /// Whether the check needs `degraded` of each answer, which HTTP has and the Redis protocol does not.
    fn needs_http(&self) -> bool {
        self.share.is_some() || matches!(self.subjects, Subjects::FreshWithAddress(_))
    }
}

/// The protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Http,
    Resp,
}

/// The subjects of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subjects {
    /// The users `ACT-0`, `ACT-1` ask over and over.
    Few(u32),
    /// Every request has a user of its own.
    Fresh,
    /// Every request has a user of its own, and one of few addresses, to which the bound applies.
    FreshWithAddress(u32),
}

/// The most units that a subject with a single request may be charged. A request costs one unit.
pub(crate) const FRESH_ALLOWANCE: u64 = 3;

const SECOND: Duration = Duration::from_secs(1);
const TENTH: Duration = Duration::from_millis(100);

const fn hot(act: &'static str, limits: &'static str, bound: Bound) -> Kind {
    Kind { act, limits, more: "", subjects: Subjects::Few(2), bound: Some(bound), share: None }
}

const fn fresh(act: &'static str, limits: &'static str) -> Kind {
    Kind { act, limits, more: "", subjects: Subjects::Fresh, bound: None, share: None }
}

/// A node grants a quarter of each limit by itself, because there are four nodes.
const LOCAL_SHARE: &str = "1/4";

pub(crate) const KINDS: [Kind; 14] = [
    hot("sliding", "'10/1s'", Bound::Span { count: 10, period: SECOND }),
    hot("fixed", "'fixed 10/1s'", Bound::Windows { count: 10, period: SECOND }),
    hot("approx", "'approx 10/1s'", Bound::Windows { count: 10, period: SECOND }),
    hot("bucket", "'bucket 10/1s burst=5'", Bound::Bucket { burst: 5, interval: TENTH }),
    hot("pace", "'pace 10/1s burst=5 max_wait=0s'", Bound::Bucket { burst: 5, interval: TENTH }),
    // Two limits have two keys. While their slot moves, the keys can be on two servers.
    hot("two", "'10/1s', 'bucket 20/1s burst=20'", Bound::Span { count: 10, period: SECOND }),
    Kind {
        act: "ban",
        limits: "'5/1s'",
        more: "ban = { after = 3, within = '5s', for = ['1s'] }",
        subjects: Subjects::Few(2),
        bound: Some(Bound::Span { count: 5, period: SECOND }),
        share: None,
    },
    Kind {
        act: "share",
        limits: "'20/1s'",
        more: "on_failure = 'local'",
        subjects: Subjects::Few(2),
        bound: Some(Bound::Span { count: 20, period: SECOND }),
        share: Some(Bound::Span { count: 5, period: SECOND }),
    },
    Kind {
        act: "pair",
        limits: "'3/366d'",
        more: "",
        subjects: Subjects::FreshWithAddress(2),
        bound: Some(Bound::Span { count: 10, period: SECOND }),
        share: None,
    },
    fresh("once-sliding", "'3/366d'"),
    fresh("once-fixed", "'fixed 3/366d'"),
    fresh("once-approx", "'approx 3/366d'"),
    fresh("once-bucket", "'bucket 1/366d burst=3'"),
    // The node computes the end of a month and sends it along. A node whose clock is an hour ahead sends a wrong end,
    // and Redis makes it ask again.
    fresh("once-month", "'fixed 3/month tz=ZONE'"),
];

/// Opens `/v1/bans`. The nodes listen on loopback addresses only, and end with the run.
pub(crate) const ADMIN_TOKEN: &str = "the-admin-token-of-a-soak";

/// The configuration of a node; `store` names its servers and its timeout.
pub(crate) fn configuration(store: &str) -> String {
    let mut text =
        format!("[server]\nthreads = 2\n[auth]\nadmin_token = '{ADMIN_TOKEN}'\n[store]\ntype = 'redis'\n{store}\n");
    text += &format!("on_failure = 'deny'\nlocal_share = '{LOCAL_SHARE}'\n");
    for Kind { act, limits, more, .. } in &KINDS {
        let limits = limits.replace("ZONE", &zone_at_noon());
        text += &format!("[[rule]]\nname = '{act}'\nwhen = {{ act = '{act}' }}\nby = ['user']\n");
        text += &format!("limits = [{limits}]\n{more}\n");
    }
    text + "[[rule]]\nname = 'pair-address'\nwhen = { act = 'pair' }\nby = ['ip']\nlimits = ['10/1s']\n"
}

/// A time zone in which it is noon, so that no month ends during a run.
fn zone_at_noon() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let ahead = 12 - (seconds / 3600 % 24) as i64;
    // In these names the sign is reversed.
    format!("Etc/GMT{:+}", -ahead)
}

/// One request to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The index in [`KINDS`].
    pub(crate) kind: usize,
    /// The number of the subject that the bound is for.
    pub(crate) subject: u32,
    /// The number of the user, if every request has its own.
    pub(crate) fresh: Option<u32>,
}

impl Asked {
    /// The next request of a client. `fresh` gives numbers that no other request has.
    pub(crate) fn next(random: &mut Random, door: Door, fresh: impl FnOnce() -> u32) -> Asked {
        let mut kind = random.below(KINDS.len());
        while door == Door::Resp && KINDS[kind].needs_http() {
            kind = random.below(KINDS.len());
        }
        let mut subject = |count: u32| random.below(count as usize) as u32;
        match KINDS[kind].subjects {
            Subjects::Few(count) => Asked { kind, subject: subject(count), fresh: None },
            Subjects::Fresh => Asked { kind, subject: 0, fresh: Some(fresh()) },
            Subjects::FreshWithAddress(count) => Asked { kind, subject: subject(count), fresh: Some(fresh()) },
        }
    }

    /// The names and values of the request's fields.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let kind = &KINDS[self.kind];
        let user = match self.fresh {
            Some(number) => format!("fresh-{number}"),
            None => user(kind.act, self.subject),
        };
        let mut fields = vec![("act", kind.act.to_owned()), ("user", user)];
        if let Subjects::FreshWithAddress(_) = kind.subjects {
            fields.push(("ip", format!("10.0.0.{}", self.subject)));
        }
        fields
    }
}

/// The kind of that name.
pub(crate) fn kind(act: &str) -> usize {
    KINDS.iter().position(|kind| kind.act == act).unwrap()
}

/// The name of one of the few users.
pub(crate) fn user(act: &str, subject: u32) -> String {
    format!("{act}-{subject}")
}
