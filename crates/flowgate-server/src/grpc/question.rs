//! Descriptors as requests: what each asks, of which fields, at which cost.
//!
//! Rule       The fields of a descriptor are `domain`, `descriptor` (its keys in order, joined by commas) and its
//!            entries. A key that stands again is `key.2`, `key.3`. `remote_address` is also `ip`, so that bans and
//!            lists by `ip` hold for Envoy's clients.
//! Rule       A descriptor takes its cost; with negative hits it gives the cost back; with a cost of its own that is
//!            zero it looks whether anything is left. Envoy does not wait, so `pace` may not delay a request.

use std::borrow::Cow;
use std::collections::HashMap;

use flowgate::{Op, Span};
use flowgate_engine::Request;
use smallvec::SmallVec;

use super::message::{Descriptor, RateLimitRequest};

const DOMAIN: &str = "domain";
const DESCRIPTOR: &str = "descriptor";
const REMOTE_ADDRESS: &str = "remote_address";
const ADDRESS: &str = "ip";

/// The number of entries from which on a table finds repeated keys.
const MANY_ENTRIES: usize = 16;

/// The names of one descriptor's fields.
#[derive(Debug)]
pub(crate) struct FieldNames<'b> {
    descriptor: Cow<'b, str>,
    names: SmallVec<[Cow<'b, str>; 4]>,
}

impl<'b> FieldNames<'b> {
    pub(crate) fn new(descriptor: &'b Descriptor<'_>) -> FieldNames<'b> {
        let entries = &descriptor.entries;
        let joined = match entries.as_slice() {
            [(key, _)] => Cow::Borrowed(&**key),
            entries => {
                let mut keys = String::new();
                for (key, _) in entries {
                    if !keys.is_empty() {
                        keys.push(',');
                    }
                    keys.push_str(key);
                }
                Cow::Owned(keys)
            }
        };
        let mut seen: HashMap<&str, u32> = HashMap::new();
        let mut number_of = |index: usize, key: &'b str| {
            let own = u32::from(key == DOMAIN || key == DESCRIPTOR);
            if entries.len() < MANY_ENTRIES {
                return own + 1 + entries[..index].iter().filter(|(earlier, _)| earlier == key).count() as u32;
            }
            let number = seen.entry(key).or_insert(own);
            *number += 1;
            *number
        };
        let name = |(index, (key, _)): (usize, &'b (Cow<'_, str>, Cow<'_, str>))| match number_of(index, key) {
            1 => Cow::Borrowed(&**key),
            number => Cow::Owned(format!("{key}.{number}")),
        };
        FieldNames { descriptor: joined, names: entries.iter().enumerate().map(name).collect() }
    }
}

/// The operation and the cost of a descriptor.
pub(crate) fn operation(call: &RateLimitRequest<'_>, descriptor: &Descriptor<'_>) -> (Op, u64) {
    // Zero is the default and means that no cost was given.
    let cost = descriptor.hits_addend.unwrap_or(u64::from(call.hits_addend.max(1)));
    match descriptor.hits_addend {
        _ if descriptor.is_negative_hits => (Op::Refund, cost),
        Some(0) => (Op::Peek, 1),
        _ => (Op::TakeWithin(Span::ZERO), cost),
    }
}

/// The request by which rules decide a descriptor.
pub(crate) fn request<'b>(
    call: &'b RateLimitRequest<'_>,
    descriptor: &'b Descriptor<'_>,
    names: &'b FieldNames<'_>,
    cost: u64,
) -> Request<'b> {
    let mut request = Request::new().cost(cost);
    request.push(DOMAIN, &call.domain);
    request.push(DESCRIPTOR, &names.descriptor);
    for (name, (_, value)) in names.names.iter().zip(&descriptor.entries) {
        request.push(name, value);
    }
    // If an entry is named `ip`, its value comes first and counts.
    if let Some((_, address)) = descriptor.entries.iter().find(|(key, _)| key == REMOTE_ADDRESS) {
        request.push(ADDRESS, address);
    }
    request
}
