//! Every message about a rule file, as people see it: `testdata/koala/errors/NAME.conf` and the text beside it.
//!
//! To add a case write the `.conf`, run the tests with `UPDATE_SNAPSHOTS=1`, and read the `.txt`.

use flowgate_engine::config::Report;
use flowgate_testkit::snapshots;

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
    assert_eq!(report.origins.len(), 1, "it is watched for");
}

fn check_all(folder: &str, expect: impl Fn(&str, Result<Report, Report>) -> Report) -> usize {
    snapshots::check(&format!("koala/{folder}"), "conf", |name, base, text| {
        let loaded = KoalaFile::load(Input::Text { name, base, text }, "Asia/Shanghai");
        expect(name, loaded.map(|loaded| loaded.warnings)).to_string()
    })
}
