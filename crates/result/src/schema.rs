//! The JSON Schema of the result document, generated from the types. `INSTA_UPDATE=always` writes it again.

use crate::ResultDocument;
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn file() -> PathBuf {
    project().join("docs/schema/result.schema.json")
}

fn generated() -> Value {
    let mut schema = schemars::schema_for!(ResultDocument).to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("title".into(), "Result document of lowlat".into());
    }
    schema
}

fn compiled() -> (Schemas, SchemaIndex) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("result.schema.json", generated()).unwrap();
    let index = compiler.compile("result.schema.json", &mut schemas).unwrap();
    (schemas, index)
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let text = serde_json::to_string_pretty(&generated()).unwrap() + "\n";
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::create_dir_all(file().parent().unwrap()).unwrap();
        std::fs::write(file(), &text).unwrap();
    }
    let published = std::fs::read_to_string(file()).unwrap_or_default();
    assert!(
        published == text,
        "docs/schema/result.schema.json differs from the types: run with INSTA_UPDATE=always"
    );
}

#[test]
fn stored_documents_are_valid() {
    let (schemas, index) = compiled();
    for name in ["assess.json", "assess-unmeasured.json", "jitter.json"] {
        let text = std::fs::read_to_string(project().join("fixtures/results").join(name)).unwrap();
        let stored: Value = serde_json::from_str(&text).unwrap();
        schemas.validate(&stored, index).unwrap_or_else(|error| panic!("{name}: {error}"));
        let read: ResultDocument = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), stored, "{name}, written again");
    }
}

#[test]
fn damaged_documents_are_invalid_and_unknown_kinds_are_not() {
    let (schemas, index) = compiled();
    let text = std::fs::read_to_string(project().join("fixtures/results/jitter.json")).unwrap();
    let read: ResultDocument = serde_json::from_str(&text).unwrap();
    let document = serde_json::to_value(&read).unwrap();
    let changed = |change: fn(&mut Value)| {
        let mut document = document.clone();
        change(&mut document);
        schemas.validate(&document, index).is_ok()
    };
    assert!(!changed(|of| of["elapsed_s"] = "long".into()));
    assert!(!changed(|of| of["audit"]["findings"][0]["verdict"] = "splendid".into()));
    assert!(!changed(|of| of["measurements"][0]["record"]["cpus"][0]["runtime_ns"] = "x".into()));
    assert!(!changed(|of| of["measurements"] = serde_json::json!([{}])));
    assert!(changed(|of| of["measurements"] = serde_json::json!([{ "kind": "of 2031", "x": 1 }])));
}
