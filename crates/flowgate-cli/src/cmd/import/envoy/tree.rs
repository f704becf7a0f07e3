//! The configuration of envoyproxy/ratelimit: domains of descriptors, checked as that project checks them.

use super::yaml::{Mistake, Node, Place};

/// The descriptors of a domain.
#[derive(Debug, Default)]
pub(super) struct Domain {
    pub(super) name: String,
    pub(super) descriptors: Vec<Descriptor>,
}

/// A node: one key, or one key and value, and the nodes below it.
#[derive(Debug, Default)]
pub(super) struct Descriptor {
    pub(super) at: Place,
    pub(super) key: String,
    /// `None`: any value.
    pub(super) value: Option<String>,
    pub(super) limit: Option<RateLimit>,
    pub(super) shadow: bool,
    /// Values that a wildcard matches share one counter.
    pub(super) share_threshold: bool,
    pub(super) children: Vec<Descriptor>,
    /// The settings that have no counterpart in Flowgate, each with its place.
    pub(super) left_out: Vec<(Place, String)>,
}

/// The limit of a node.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    pub(super) name: Option<String>,
    pub(super) grant: Grant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Grant {
    #[default]
    Unlimited,
    Requests(u32, &'static Unit),
}

/// A unit of time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    /// The window in the limit language.
    pub(super) window: &'static str,
    /// How the window differs from the original, if it does.
    differs: &'static str,
}

const UNITS: [Unit; 7] = [
    Unit { name: "second", window: "s tz=UTC", differs: "" },
    Unit { name: "minute", window: "min tz=UTC", differs: "" },
    Unit { name: "hour", window: "h tz=UTC", differs: "" },
    Unit { name: "day", window: "d tz=UTC", differs: "" },
    Unit { name: "week", window: "week tz=UTC", differs: "weeks begin on Monday here, on Thursday there" },
    Unit { name: "month", window: "month tz=UTC", differs: "months are those of the calendar here, 30 days there" },
    Unit {
        name: "year",
        window: "365d",
        differs: "a year begins with the first request here, 365 days after another there",
    },
];

impl Descriptor {
    pub(super) fn is_wildcard(&self) -> bool {
        self.value.as_ref().is_some_and(|value| value.contains('*'))
    }
}

/// Reads the domain of a file, and the place of its name.
pub(super) fn read(root: &Node) -> Result<(Domain, Place), Mistake> {
    let (mut domain, mut at) = (Domain::default(), root.at);
    for (key, value) in root.map()? {
        match key.text()? {
            "domain" => {
                value.text()?.clone_into(&mut domain.name);
                at = value.at;
            }
            "descriptors" => domain.descriptors = descriptors(value)?,
            other => return Err(unknown(key.at, other)),
        }
    }
    if domain.name.is_empty() {
        return Err(Mistake::new(at, "the file has no domain"));
    }
    Ok((domain, at))
}

/// The first of siblings whose key and value another sibling before it has.
pub(super) fn composite_twice<'d>(descriptors: impl IntoIterator<Item = &'d Descriptor>) -> Option<&'d Descriptor> {
    let mut seen = std::collections::HashSet::new();
    descriptors.into_iter().find(|descriptor| !seen.insert((&descriptor.key, &descriptor.value)))
}

fn descriptors(list: &Node) -> Result<Vec<Descriptor>, Mistake> {
    let descriptors = list.list()?.iter().map(descriptor).collect::<Result<Vec<_>, _>>()?;
    match composite_twice(&descriptors) {
        Some(twice) => Err(Mistake::new(twice.at, format!("{} stands twice", shown(twice)))),
        None => Ok(descriptors),
    }
}

/// A descriptor as a person writes it.
pub(super) fn shown(descriptor: &Descriptor) -> String {
    match &descriptor.value {
        Some(value) => format!("{}={value}", descriptor.key),
        None => descriptor.key.clone(),
    }
}

fn descriptor(node: &Node) -> Result<Descriptor, Mistake> {
    let mut found = Descriptor { at: node.at, ..Descriptor::default() };
    for (key, value) in node.map()? {
        let leave_out = |found: &mut Descriptor, why: &str| found.left_out.push((key.at, why.to_owned()));
        match key.text()? {
            "key" => value.text()?.clone_into(&mut found.key),
            "value" => found.value = Some(value.text()?.to_owned()).filter(|text| !text.is_empty()),
            "rate_limit" => found.limit = Some(rate_limit(value, &mut found.left_out)?),
            "descriptors" => found.children = descriptors(value)?,
            "shadow_mode" => found.shadow = value.boolean()?,
            "share_threshold" => found.share_threshold = value.boolean()?,
            "quota_mode" if value.boolean()? => {
                leave_out(&mut found, "quota_mode is left out: the rule denies by itself");
            }
            "detailed_metric" | "value_to_metric" if value.boolean()? => {
                leave_out(&mut found, "values are not in metrics: /v1/stats has the top subjects");
            }
            "quota_mode" | "detailed_metric" | "value_to_metric" => {}
            "metadata" => leave_out(&mut found, "metadata is left out"),
            other => return Err(unknown(key.at, other)),
        }
    }
    if found.key.is_empty() {
        return Err(Mistake::new(node.at, "a descriptor has no key"));
    }
    if found.share_threshold && !found.is_wildcard() {
        return Err(Mistake::new(node.at, "share_threshold needs a value with *"));
    }
    Ok(found)
}

fn rate_limit(node: &Node, left_out: &mut Vec<(Place, String)>) -> Result<RateLimit, Mistake> {
    let (mut limit, mut unlimited, mut requests) = (RateLimit::default(), false, 0);
    let (mut unit, mut replaces) = (None, None);
    for (key, value) in node.map()? {
        match key.text()? {
            "unit" => {
                let found = read_unit(value)?;
                if !found.differs.is_empty() {
                    left_out.push((value.at, found.differs.to_owned()));
                }
                unit = Some(found);
            }
            "requests_per_unit" => requests = value.number()?,
            "unlimited" => unlimited = value.boolean()?,
            "name" => limit.name = Some(value.text()?.to_owned()).filter(|name| !name.is_empty()),
            "replaces" => replaces = Some((key.at, value)),
            other => return Err(unknown(key.at, other)),
        }
    }
    if let Some((at, replaces)) = replaces {
        check_replaces(replaces, limit.name.as_deref())?;
        left_out.push((at, "replaces is left out: every rule that matches applies, which is stricter".to_owned()));
    }
    limit.grant = match (unlimited, unit) {
        (true, None) => Grant::Unlimited,
        (true, Some(_)) => return Err(Mistake::new(node.at, "an unlimited rate_limit has no unit")),
        (false, Some(unit)) => Grant::Requests(requests, unit),
        (false, None) => return Err(Mistake::new(node.at, "the rate_limit has no unit")),
    };
    Ok(limit)
}

fn check_replaces(list: &Node, own_name: Option<&str>) -> Result<(), Mistake> {
    for item in list.list()? {
        for (key, value) in item.map()? {
            match (key.text()?, value.text()?) {
                ("name", "") => return Err(Mistake::new(value.at, "replaces names nothing")),
                ("name", name) if Some(name) == own_name => {
                    return Err(Mistake::new(value.at, format!("{name} replaces itself")));
                }
                ("name", _) => {}
                (other, _) => return Err(unknown(key.at, other)),
            }
        }
    }
    Ok(())
}

fn read_unit(node: &Node) -> Result<&'static Unit, Mistake> {
    let text = node.text()?;
    let unit = UNITS.iter().find(|unit| unit.name.eq_ignore_ascii_case(text));
    let unknown = || format!("{text:?} is not a unit: second, minute, hour, day, week, month or year");
    unit.ok_or_else(|| Mistake::new(node.at, unknown()))
}

fn unknown(at: Place, key: &str) -> Mistake {
    Mistake::new(at, format!("unknown key {key:?}"))
}
