//! What property tests share: random limits and steps ([`specs`]), and the reference that answers them ([`naive`]).

pub mod calendars;
pub mod naive;
pub mod specs;
