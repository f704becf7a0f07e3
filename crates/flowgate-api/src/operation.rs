//! What a caller asks of the counters, and its name in paths, bodies, traces and metrics.

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer};

use crate::Text;

/// The operation that a caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Checks and counts, in one atomic step.
    #[default]
    Take,
    /// Checks and changes nothing.
    Peek,
    /// Counts without checking.
    Record,
    /// Gives units back, at most until the counter is as if never used.
    Refund,
    /// Forgets what was counted for the subject. The answer shows the fresh state.
    Reset,
}

/// In the order of [`Operation::ALL`].
const NAMES: [&str; 5] = ["take", "peek", "record", "refund", "reset"];

impl Operation {
    /// All operations, in the order of their declaration.
    pub const ALL: [Operation; 5] =
        [Operation::Take, Operation::Peek, Operation::Record, Operation::Refund, Operation::Reset];

    /// `take`, `peek`, `record`, `refund` or `reset`.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The operation of this name.
    pub fn named(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name)
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Operation, D::Error> {
        let Text(name) = Text::deserialize(deserializer)?;
        Operation::named(&name).ok_or_else(|| de::Error::unknown_variant(&name, &NAMES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_operations() {
        for operation in Operation::ALL {
            assert_eq!(Operation::named(operation.name()), Some(operation));
        }
        assert_eq!(serde_json::to_string(&Operation::Refund).unwrap(), "\"refund\"");
        assert_eq!(serde_json::from_str::<Operation>("\"reset\"").unwrap(), Operation::Reset);
        let error = serde_json::from_str::<Operation>("\"TAKE\"").unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `TAKE`, expected one of `take`, `peek`,"), "{error}");
    }
}
