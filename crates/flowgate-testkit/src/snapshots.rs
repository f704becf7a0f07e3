//! Messages as people see them: a folder of inputs, and beside each input a `.txt` with the expected text.

use std::fs;
use std::path::Path;

/// Compares what `render` makes of every file in a folder of `testdata/` with the text recorded beside it. `render`
/// gets the file's name, the folder and the file's text. Returns the number of files.
///
/// With the variable `UPDATE_SNAPSHOTS` the texts are recorded anew.
///
/// # Panics
///
/// If a text differs.
#[track_caller]
pub fn check(folder: &str, extension: &str, render: impl Fn(&str, &Path, &str) -> String) -> usize {
    let folder = crate::files::repository("testdata").join(folder);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    let mut wrong = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(path).unwrap();
        // Messages have whole paths, and the repository's place differs between machines.
        let found = render(name, &folder, &text).replace(folder.to_str().unwrap(), "..");
        let recorded = path.with_extension("txt");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&recorded, &found).unwrap();
        } else if fs::read_to_string(&recorded).unwrap_or_default() != found {
            wrong.push(format!("--- {name} now gives\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ from what is recorded:\n{}", wrong.len(), wrong.join("\n"));
    files.len()
}
