//! A section names each of its keys once, with the value and the form of that key; reading and writing follow from it.

use super::form::Form;
use super::report::Report;
use super::secret::{self, PlacedSecret, Secret};
use super::table_reader::TableReader;
use super::writer::Writer;

/// A table of the configuration whose keys are single values.
pub(crate) trait Section: Clone + Default {
    /// The name of the table.
    const NAME: &'static str;

    /// Visits all keys, in the order in which they are written.
    fn visit(&mut self, keys: &mut Keys<'_, '_>);

    /// Reads the section from the root of a tree. An absent or wrong key keeps its default; wrong ones are reported.
    fn read(report: &mut Report, root: &mut TableReader<'_>) -> Self {
        let mut section = Self::default();
        let mut fields = root.section(report, Self::NAME);
        section.visit(&mut Keys::Read(report, &mut fields));
        fields.finish(report);
        section
    }

    fn write(&self, out: &mut Writer) {
        out.section(Self::NAME);
        self.clone().visit(&mut Keys::Write(out));
    }
}

/// What happens to the keys of a section when they are visited.
pub(crate) enum Keys<'k, 't> {
    /// Each value is read from the table.
    Read(&'k mut Report, &'k mut TableReader<'t>),
    /// Each value is written.
    Write(&'k mut Writer),
}

impl Keys<'_, '_> {
    /// Visits a key.
    pub(crate) fn key<T>(&mut self, name: &'static str, value: &mut T, form: Form<T>) {
        match self {
            Keys::Read(report, fields) => fields.read_into(report, name, value, form.read),
            Keys::Write(out) => out.raw(name, (form.write)(value)),
        }
    }

    /// Visits a secret, and the key that may name its file instead. `accept` checks what was read.
    pub(crate) fn secret(
        &mut self,
        [name, file_name]: [&'static str; 2],
        value: &mut Option<Secret>,
        accept: fn(&mut Report, PlacedSecret) -> Option<Secret>,
    ) {
        match self {
            Keys::Read(report, fields) => {
                let given = secret::read(report, fields, name, file_name);
                *value = given.and_then(|given| accept(report, given));
            }
            Keys::Write(out) => out.secret(name, value.as_ref()),
        }
    }
}
