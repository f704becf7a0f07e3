//! Fields by number: the names that the rules use are numbered once, so that matching a request is indexing.

use std::cell::Cell;

use super::text_table::TextTable;
use crate::address::Address;
use crate::field_name::canonical;
use crate::request::Request;

/// A field that some rule uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FieldId(u16);

/// The names that the rules use.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldNames {
    ids: TextTable<FieldId>,
    names: Vec<FieldName>,
}

#[derive(Clone, Debug)]
struct FieldName {
    text: Box<str>,
    /// True if a condition or `limits_by` of some rule reads the value. The values of other fields only make subjects.
    is_read: bool,
}

impl FieldNames {
    /// The number of a name, a new one if need be; `None` when there are too many.
    pub(crate) fn number(&mut self, name: &str) -> Option<FieldId> {
        let name = canonical(name);
        if let Some(&id) = self.ids.get(name) {
            return Some(id);
        }
        let id = FieldId(u16::try_from(self.names.len()).ok()?);
        self.ids.insert(name.into(), id);
        self.names.push(FieldName { text: name.into(), is_read: false });
        Some(id)
    }

    /// The number of a name, if some rule uses it.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<FieldId> {
        self.ids.get(canonical(name)).copied()
    }

    pub(crate) fn name(&self, id: FieldId) -> &str {
        &self.names[usize::from(id.0)].text
    }

    /// Notes that a condition or `limits_by` of some rule reads the value of a field.
    pub(super) fn note_read(&mut self, id: FieldId) {
        self.names[usize::from(id.0)].is_read = true;
    }

    /// True if a condition or `limits_by` of some rule reads the value of a field.
    pub(crate) fn is_read(&self, id: FieldId) -> bool {
        self.names[usize::from(id.0)].is_read
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = FieldId> {
        (0..self.names.len()).map(|index| FieldId(index as u16))
    }

    /// The values of a request without fields.
    #[inline]
    pub(crate) fn no_values<'q>(&self) -> Values<'q> {
        Values::new(self.names.len())
    }

    /// Fills in the values of the fields that rules use. The values are written in place, because copying them would cost
    /// as much as finding them.
    #[inline]
    pub(crate) fn read_into<'q>(&self, values: &mut Values<'q>, request: &Request<'q>) {
        for (name, text) in request.fields() {
            if let Some(id) = self.ids.get(name) {
                values.put(*id, text);
            }
        }
        if let Some((name, text)) = request.counted {
            let id = self.ids.get(name).filter(|id| values.text(**id).is_some());
            values.counted = id.map(|id| (*id, text));
        }
    }

    /// The values that a request gives to the fields that matter.
    pub(crate) fn read<'q>(&self, request: &Request<'q>) -> Values<'q> {
        let mut values = self.no_values();
        self.read_into(&mut values, request);
        values
    }
}

/// More fields than this cost an allocation.
const USUAL_FIELDS: usize = 8;

/// The values of one request, by field.
#[derive(Debug)]
pub(crate) struct Values<'q> {
    /// Those of the first fields.
    few: [Option<&'q str>; USUAL_FIELDS],
    /// Those of the others.
    many: Vec<Option<&'q str>>,
    /// The field that rules count by another text than its value, and that text.
    counted: Option<(FieldId, &'q str)>,
    address: AddressCache,
}

/// The address that the value of a field spells: the last one that was parsed.
#[derive(Debug, Default)]
struct AddressCache(Cell<Option<(FieldId, Option<Address>)>>);

impl<'q> Values<'q> {
    /// The values of `fields` fields, all of them absent.
    #[inline]
    fn new(fields: usize) -> Values<'q> {
        let many = vec![None; fields.saturating_sub(USUAL_FIELDS)];
        Values { few: [None; USUAL_FIELDS], many, counted: None, address: AddressCache::default() }
    }

    #[inline]
    fn text(&self, FieldId(id): FieldId) -> Option<&'q str> {
        let id = usize::from(id);
        if id < USUAL_FIELDS { self.few[id] } else { self.many[id - USUAL_FIELDS] }
    }

    /// Sets the value of a field. If a request has a field twice, the first value counts.
    #[inline]
    pub(crate) fn put(&mut self, FieldId(id): FieldId, text: &'q str) {
        let id = usize::from(id);
        let value = if id < USUAL_FIELDS { &mut self.few[id] } else { &mut self.many[id - USUAL_FIELDS] };
        value.get_or_insert(text);
    }

    #[inline]
    pub(crate) fn get(&self, id: FieldId) -> Option<Value<'_, 'q>> {
        self.text(id).map(|text| Value { text, id, cache: &self.address })
    }

    /// The text that a field is counted by; empty if the request lacks the field.
    #[inline]
    pub(crate) fn counted(&self, id: FieldId) -> &'q str {
        match self.counted {
            Some((counted, text)) if counted == id => text,
            _ => self.text(id).unwrap_or_default(),
        }
    }
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'v, 'q> {
    pub(crate) text: &'q str,
    id: FieldId,
    cache: &'v AddressCache,
}

impl Value<'_, '_> {
    /// The address that the value spells. Read once, however many rules ask: mostly one field holds addresses.
    pub(crate) fn address(&self) -> Option<Address> {
        match self.cache.0.get() {
            Some((id, address)) if id == self.id => address,
            _ => {
                let address = Address::parse(self.text);
                self.cache.0.set(Some((self.id, address)));
                address
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_lacks_is_not_counted_by_anything_else() {
        let mut names = FieldNames::default();
        let (ip, user) = (names.number("ip").unwrap(), names.number("user").unwrap());
        let request = Request::new().field("user", "42").counted_as("ip", "2001:db8::");
        let values = names.read(&request);
        assert_eq!((values.counted(user), values.counted(ip)), ("42", ""));
        assert_eq!(names.read(&request.clone().field("ip", "2001:db8::7")).counted(ip), "2001:db8::");
    }
}
