//! Every answer that these tests get is checked against `/openapi.json`, which the server itself gives out.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::json;

use super::*;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../src/http/openapi.json");
    serde_json::from_str(text).unwrap()
});

/// Compiled schemas by their text: compiling one takes longer than asking the server.
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Fails if `openapi.json` does not describe an answer.
#[track_caller]
pub(super) fn check(method: &str, path: &str, reply: &Reply) {
    let path = path.split('?').next().unwrap();
    let operation = described(path).map(|item| &item[method.to_ascii_lowercase()]);
    // HEAD is allowed wherever GET is, and `openapi.json` lists it for some paths only.
    if method == "HEAD" && operation.is_none_or(Value::is_null) {
        return;
    }
    let response = match operation {
        None => &json!({"$ref": "#/components/responses/NotFound"}),
        // A method that is not described is not answered. A client without access gets 401 or 403 before it learns
        // that.
        Some(Value::Null) if [401, 403].contains(&reply.status) => return,
        Some(Value::Null) => {
            assert_eq!(reply.status, 405, "{method} {path} is answered but not described");
            &json!({"$ref": "#/components/responses/BadRequest"})
        }
        Some(operation) => {
            let responses = &operation["responses"];
            let class = format!("{}XX", reply.status / 100);
            responses
                .get(reply.status.to_string())
                .or_else(|| responses.get(&class))
                .unwrap_or_else(|| panic!("{method} {path}: status {} is not described: {reply:?}", reply.status))
        }
    };
    let response = resolve(response);
    let content = &response["content"];
    let kind = reply.header("content-type").map(|kind| kind.split(';').next().unwrap());
    match (content.as_object(), kind) {
        (None, kind) => assert_eq!((kind, reply.body.as_str()), (None, ""), "{method} {path} has a body"),
        (Some(content), kind) => {
            let kind = kind.unwrap_or_else(|| panic!("{method} {path} has no body"));
            let schema =
                &content.get(kind).unwrap_or_else(|| panic!("{method} {path}: {kind} is not described"))["schema"];
            let value = if kind.ends_with("json") { reply.json() } else { Value::from(reply.body.clone()) };
            let errors: Vec<_> = validator(schema).iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{method} {path}: {errors:?} in {}", reply.body);
        }
    }
}

/// The item of a path, or of the one with a variable that it fits.
fn described(path: &str) -> Option<&'static Value> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let fits = |template: &str| match template.split_once('{') {
        None => template == path,
        Some((start, _)) => path.strip_prefix(start).is_some_and(|rest| !rest.is_empty() && !rest.contains('/')),
    };
    paths.iter().find(|(template, _)| fits(template)).map(|(_, item)| item)
}

fn resolve(value: &Value) -> &Value {
    match value["$ref"].as_str() {
        Some(reference) => DOCUMENT.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => value,
    }
}

fn validator(schema: &Value) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().unwrap();
    let compile = || {
        let mut whole = schema.clone();
        whole["components"] = DOCUMENT["components"].clone();
        Arc::new(jsonschema::draft202012::new(&whole).unwrap())
    };
    Arc::clone(validators.entry(schema.to_string()).or_insert_with(compile))
}

#[test]
fn the_server_gives_out_the_description() {
    let reply = Running::start("").get("/openapi.json");
    assert_eq!(reply.json(), *DOCUMENT);
}

#[test]
fn every_schema_compiles_and_refuses_something_else() {
    for (name, schema) in DOCUMENT["components"]["schemas"].as_object().unwrap() {
        assert!(!validator(schema).is_valid(&json!({"something": "else"})), "{name}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn visit(value: &Value) {
        if let Some(reference) = value["$ref"].as_str() {
            assert!(DOCUMENT.pointer(&reference[1..]).is_some(), "{reference}");
        }
        match value {
            Value::Array(items) => items.iter().for_each(visit),
            Value::Object(members) => members.values().for_each(visit),
            _ => {}
        }
    }
    visit(&DOCUMENT);
}
