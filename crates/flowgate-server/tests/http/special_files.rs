//! A FIFO in the place of a file that the server reads: refused at once, and nothing waits for it.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::rules::{AdminFile, FIRST};

fn replace_by_fifo(path: &Path) {
    std::fs::remove_file(path).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn fifo_in_place_of_the_configuration_is_refused_and_holds_nothing_up() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    replace_by_fifo(&admin.path);

    for reply in [admin.server.get("/v1/rules"), admin.put(&etag, &text), admin.put("*", &text)] {
        reply.is_mistake(500, None);
        assert!(reply.body.contains("it is not a regular file"), "{reply:?}");
    }

    std::fs::remove_file(&admin.path).unwrap();
    std::fs::write(&admin.path, FIRST).unwrap();
    assert_eq!(admin.put(&etag, &text.replace("5/60s", "6/60s")).status, 200, "the next change is not held up");
    assert_eq!(admin.limit(), 6);
}

#[test]
fn fifo_among_the_older_versions_is_refused() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    assert_eq!(admin.put(&etag, &text.replace("5/60s", "6/60s")).status, 200);
    replace_by_fifo(&admin.path.with_file_name(".flowgate.toml.history").join("1.toml"));

    let refused = admin.server.post("/v1/rules/rollback", r#"{"version":1}"#);
    refused.is_mistake(500, None);
    assert!(refused.body.contains("it is not a regular file"), "{refused:?}");
    assert_eq!(admin.limit(), json!(6));
}

#[test]
fn fifo_as_an_included_file_or_a_list_is_a_mistake_in_the_text() {
    let admin = AdminFile::start(FIRST);
    let directory = admin.path.parent().unwrap();
    for name in ["more.toml", "list.txt"] {
        std::fs::write(directory.join(name), "").unwrap();
        replace_by_fifo(&directory.join(name));
    }
    for text in ["include = ['more.toml']\n", "lists = { vip = { file = 'list.txt' } }\n"] {
        let refused = admin.put("*", &format!("{text}{FIRST}"));
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body.contains("it is not a regular file"), "{refused:?}");
    }
}
