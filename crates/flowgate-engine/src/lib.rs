//! Rules, lists and bans on top of `flowgate`.
