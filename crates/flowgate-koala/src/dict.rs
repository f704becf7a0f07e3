//! `[dicts]`: one `name : file` a line. A dict is a list of the engine, so it may hold networks, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flowgate_engine::front::{self, Location, MAX_LIST_BYTES, Report, absolute, quoted, quoted_path, wrong_entry};
use flowgate_engine::lists::{List, ListDef, ListSource};

use super::piece::Piece;
use super::sections::lines;

/// The most dicts of a file.
const MAX_DICTS: usize = 1000;

/// The dicts of a file.
#[derive(Default)]
pub(super) struct Dicts {
    pub(super) defs: Vec<ListDef>,
    pub(super) loaded: BTreeMap<String, Arc<List>>,
    /// Every name with its place, also of wrong dicts: a rule that names a wrong dict does not make a second mistake.
    names: BTreeMap<String, Location>,
}

impl Dicts {
    /// Reads the dicts; `base` is the directory of the rule file.
    pub(super) fn read(report: &mut Report, lines: &[Piece<'_>], base: &Path) -> Dicts {
        let mut dicts = Dicts::default();
        if let Some(line) = lines.get(MAX_DICTS) {
            report.error(line.at(), format!("there are at most {MAX_DICTS} dicts")).done();
        }
        for line in lines.iter().take(MAX_DICTS) {
            dicts.read_one(report, line.without_comment(), base);
        }
        dicts
    }

    pub(super) fn is_known(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    fn read_one(&mut self, report: &mut Report, line: Piece<'_>, base: &Path) {
        let (name, file) = match line.split_once(':') {
            Some((name, file)) if !name.trim().text.is_empty() && !file.trim().text.is_empty() => {
                (name.trim(), file.trim())
            }
            _ => {
                let message = format!("expected `name : file`, found {}", quoted(line.text));
                report.error(line.at(), message).done();
                return;
            }
        };
        if let Some(first) = self.names.insert(name.text.to_owned(), name.at()) {
            let message = format!("the dict {} is given twice; the last one counts", quoted(name.text));
            report.warning(name.at(), message).place("the first one is at", first).done();
            self.defs.retain(|def| def.name != name.text);
        }
        let Some((path, text)) = find(report, file, base) else { return };
        match List::parse(&text) {
            Ok(list) => {
                self.defs.push(ListDef { name: name.text.to_owned(), source: ListSource::File(path), kind: None });
                self.loaded.insert(name.text.to_owned(), Arc::new(list));
            }
            Err(error) => {
                // The report names the line in the dict and shows nothing else of it, because the sender of a rule file
                // may name any file.
                let source = report.add_file(path.display().to_string(), &front::directory(&path), text.clone());
                let mut lines = lines(Piece::whole(source, &text));
                let at = lines.nth(error.line.saturating_sub(1)).map_or_else(|| file.at(), |line| line.at());
                report.error(at, wrong_entry(&error)).place("the dict is named at", file.at()).done();
            }
        }
    }
}

/// Koala resolves a relative path from the directory in which it was started, usually the directory above `conf`. So
/// Flowgate looks beside the rule file, then in the directory above it, then in its own current directory.
fn find(report: &mut Report, file: Piece<'_>, base: &Path) -> Option<(PathBuf, String)> {
    let mut places = vec![base.join(file.text)];
    if Path::new(file.text).is_relative() {
        places.extend(base.parent().map(|above| above.join(file.text)));
        places.push(absolute(Path::new(file.text)));
    }
    places.dedup();
    for place in &places {
        match front::read(report, place, MAX_LIST_BYTES) {
            Ok(text) => return Some((place.clone(), text)),
            Err(cause) if cause.is_absence() => {}
            Err(cause) => {
                return report.error(file.at(), format!("cannot read {}: {cause}", place.display())).refuse();
            }
        }
    }
    let message = format!("cannot read {}: there is no such file", quoted_path(file.text));
    let hint = match places.len() {
        1 => "a dict without entries is an empty file".to_owned(),
        _ => "a relative path starts from the rule file's directory, the one above it, or the current one".to_owned(),
    };
    report.error(file.at(), message).hint(hint).refuse()
}
