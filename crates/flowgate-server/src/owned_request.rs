//! A request that outlives the bytes it was read from, since its answer comes later.

use flowgate_engine::Request;

/// A copy of a request.
#[derive(Debug)]
pub(crate) struct OwnedRequest {
    /// All names and values, one behind the other.
    text: String,
    /// Where each of them ends.
    ends: Vec<usize>,
    cost: u64,
}

impl OwnedRequest {
    pub(crate) fn new(request: &Request<'_>) -> OwnedRequest {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for part in request.fields().flat_map(|(name, value)| [name, value]) {
            text.push_str(part);
            ends.push(text.len());
        }
        OwnedRequest { text, ends, cost: request.units() }
    }

    pub(crate) fn get(&self) -> Request<'_> {
        let part = |index: usize| {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            &self.text[start..self.ends[index]]
        };
        let fields = (0..self.ends.len()).step_by(2).map(|index| (part(index), part(index + 1)));
        fields.collect::<Request<'_>>().cost(self.cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_says_the_same() {
        for request in [Request::new(), Request::new().field("a", "").field("", "b").field("user", "é").cost(7)] {
            let copy = OwnedRequest::new(&request);
            assert_eq!(copy.get().fields().collect::<Vec<_>>(), request.fields().collect::<Vec<_>>());
            assert_eq!(copy.get().units(), request.units());
        }
    }
}
