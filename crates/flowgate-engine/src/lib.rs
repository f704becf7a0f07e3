//! Rules, lists and bans on top of [`flowgate`]: policy as data.

mod address;
mod key;
mod lists;
mod request;
mod rules;

pub use lists::{List, ListDef, ListError, ListSource};
pub use request::Request;
pub use rules::{
    Action, AddressMatcher, BanDef, Condition, Glob, Limits, Matcher, MatcherError, MatcherPart, NumberRange,
    OnFailure, Policy, RuleDef,
};
