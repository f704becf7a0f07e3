//! Rate limits that keep their promise.
