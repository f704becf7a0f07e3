//! A copy of a request, for an answer that arrives after the request's bytes are gone.

use flowgate_engine::Request;
use smallvec::SmallVec;

/// A copy of a request.
#[derive(Debug)]
pub(crate) struct OwnedRequest {
    /// All names and values, one after the other.
    text: String,
    /// Where each name and each value ends in `text`.
    ends: SmallVec<[usize; 8]>,
    cost: u64,
    id: Option<Box<str>>,
    counted: Option<(Box<str>, Box<str>)>,
}

impl OwnedRequest {
    pub(crate) fn new(request: &Request<'_>) -> OwnedRequest {
        let length = request.fields().map(|(name, value)| name.len() + value.len()).sum();
        let (mut text, mut ends) = (String::with_capacity(length), SmallVec::new());
        for part in request.fields().flat_map(|(name, value)| [name, value]) {
            text.push_str(part);
            ends.push(text.len());
        }
        let counted = request.counted.map(|(name, value)| (name.into(), value.into()));
        OwnedRequest { text, ends, cost: request.cost, id: request.id.map(Into::into), counted }
    }

    pub(crate) fn get(&self) -> Request<'_> {
        let part = |index: usize| {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            &self.text[start..self.ends[index]]
        };
        let fields = (0..self.ends.len()).step_by(2).map(|index| (part(index), part(index + 1)));
        let mut request = fields.collect::<Request<'_>>().cost(self.cost);
        if let Some(id) = &self.id {
            request = request.id(id);
        }
        if let Some((name, value)) = &self.counted {
            request = request.counted_as(name, value);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_says_the_same() {
        let full = Request::new().field("a", "").field("", "b").field("user", "é").cost(7);
        for request in [Request::new(), full.id("r1").counted_as("a", "c")] {
            let copy = OwnedRequest::new(&request);
            assert_eq!(copy.get().fields().collect::<Vec<_>>(), request.fields().collect::<Vec<_>>());
            let rest = |request: &Request<'_>| format!("{} {:?} {:?}", request.cost, request.id, request.counted);
            assert_eq!(rest(&copy.get()), rest(&request));
        }
    }
}
