//! The types of the engine that a front in another crate needs.
//!
//! A front has a rule language of its own. It reads its rule file with the places of mistakes ([`Report`]), compiles
//! the rules to a [`RuleSet`](crate::RuleSet), and makes a [`Plan`](crate::Plan) of each question. Every store decides
//! plans, whichever front made them.

pub use crate::config::files::{directory, read};
pub use crate::config::lists::{MAX_LIST_BYTES, wrong_entry};
pub use crate::config::load::absolute;
pub use crate::config::name::fits as is_name;
pub use crate::config::render::{quoted, quoted_path};
pub use crate::config::report::{Notes, Report};
pub use crate::config::source::{Location, SourceId};
pub use crate::config::suggest::did_you_mean;
pub use crate::config::when::{check_field, write as write_conditions};
pub use crate::config::writer::{list as toml_list, name as toml_key, string as toml_string};
pub use crate::plan::Include;
