//! What property tests share: random limits and steps ([`specs`]), the reference that answers them ([`naive`]), and
//! the reference for plans of several parts ([`joint`]).

pub mod calendars;
pub mod joint;
pub mod naive;
pub mod specs;
