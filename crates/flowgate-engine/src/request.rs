//! A request: what is about to happen, as fields, and what it costs.

use smallvec::SmallVec;

use crate::field_name::canonical;

/// Fields (name and value) and a cost.
///
/// ```
/// use flowgate_engine::Request;
///
/// let request = Request::new().field("act", "reply").field("user", "42").cost(2);
/// assert_eq!(request.get("user"), Some("42"));
/// ```
#[derive(Clone, Debug)]
pub struct Request<'a> {
    fields: SmallVec<[(&'a str, &'a str); 8]>,
    /// The cost.
    pub cost: u64,
    /// The request's name, where the caller gave it one.
    pub id: Option<&'a str>,
    /// The field that is counted by another value, and that value.
    pub counted: Option<(&'a str, &'a str)>,
}

impl Default for Request<'_> {
    #[inline]
    fn default() -> Self {
        Request { fields: SmallVec::new(), cost: 1, id: None, counted: None }
    }
}

impl<'a> Request<'a> {
    /// A request without fields that costs 1.
    #[inline]
    pub fn new() -> Request<'a> {
        Request::default()
    }

    /// Adds a field. Where a name stands twice, the first value counts. A [second name](crate::field_name) becomes the
    /// first.
    #[inline]
    #[must_use]
    pub fn field(mut self, name: &'a str, value: &'a str) -> Request<'a> {
        self.push(name, value);
        self
    }

    /// Adds a field in place. A protocol calls it for each field that it reads.
    #[inline]
    pub fn push(&mut self, name: &'a str, value: &'a str) {
        self.fields.push((canonical(name), value));
    }

    /// Sets the cost.
    #[inline]
    #[must_use]
    pub fn cost(mut self, cost: u64) -> Request<'a> {
        self.cost = cost;
        self
    }

    /// Gives the request a name for the log. No rule sees it.
    #[must_use]
    pub fn id(mut self, id: &'a str) -> Request<'a> {
        self.id = Some(id);
        self
    }

    /// Lets rules count one field by another value than the one that conditions and bans by hand see. For example, an
    /// IPv6 client is counted by its network, because it may own all addresses of it.
    ///
    /// ```
    /// use flowgate_engine::Request;
    ///
    /// let request = Request::new().field("ip", "2001:db8::7").counted_as("ip", "2001:db8::");
    /// assert_eq!((request.get("ip"), request.counted("ip")), (Some("2001:db8::7"), Some("2001:db8::")));
    /// ```
    #[must_use]
    pub fn counted_as(mut self, name: &'a str, value: &'a str) -> Request<'a> {
        self.counted = Some((canonical(name), value));
        self
    }

    /// The value by which rules count a field: its own, unless [another](Request::counted_as) was given.
    pub fn counted(&self, name: &str) -> Option<&'a str> {
        let name = canonical(name);
        let own = self.get(name)?;
        Some(self.counted.filter(|(counted, _)| *counted == name).map_or(own, |(_, value)| value))
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let name = canonical(name);
        self.fields.iter().find(|field| field.0 == name).map(|field| field.1)
    }

    /// The fields in the order in which they were added.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        self.fields.iter().copied()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Request<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(fields: I) -> Request<'a> {
        let fields = fields.into_iter().map(|(name, value)| (canonical(name), value)).collect();
        Request { fields, ..Request::default() }
    }
}
