//! Every message about a rule file, as people see it: `testdata/koala/errors/NAME.conf` and the text beside it.
//!
//! To add a case write the `.conf`, run the tests with `UPDATE_SNAPSHOTS=1`, and read the `.txt`.

use std::fs;

use flowgate_engine::config::Report;

use super::*;

#[test]
fn mistakes_are_reported_as_recorded() {
    let cases = check_all("errors", |name, result| match result {
        Err(report) => report,
        Ok(_) => panic!("{name} has no mistake"),
    });
    assert!(cases >= 15, "only {cases} found");
}

#[test]
fn warnings_are_given_as_recorded() {
    let cases = check_all("warnings", |name, result| match result {
        Ok(warnings) if !warnings.is_empty() => warnings,
        Ok(_) => panic!("{name} has no warning"),
        Err(report) => panic!("{name} has mistakes:\n{report}"),
    });
    assert!(cases >= 3, "only {cases} found");
}

#[test]
fn a_file_that_is_not_there_is_reported() {
    let report = KoalaFile::load(Input::File(Path::new("/nowhere/rule.conf")), "UTC").unwrap_err();
    assert_eq!(report.to_string(), "error: cannot read /nowhere/rule.conf: there is no such file\n");
    assert_eq!(report.origins().len(), 1, "it is watched for");
}

fn check_all(directory: &str, expect: impl Fn(&str, Result<Report, Report>) -> Report) -> usize {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/koala").canonicalize().unwrap().join(directory);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    files.sort();
    let mut wrong = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(path).unwrap();
        let input = Input::Text { name, base: &directory, text: &text };
        let report = expect(name, KoalaFile::load(input, "Asia/Shanghai").map(|loaded| loaded.warnings));
        let found = report.to_string().replace(directory.to_str().unwrap(), "..");
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
