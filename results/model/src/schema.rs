//! The JSON Schema of the result document, generated from the types.

use crate::ResultDocument;
use serde_json::Value;

/// The schema, which `cargo xtask handbook` writes to a file.
#[must_use]
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(ResultDocument).to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("title".into(), "Result document of lowlat".into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use boon::{Compiler, SchemaIndex, Schemas};
    use std::path::{Path, PathBuf};

    fn results() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/results")
    }

    fn compiled() -> (Schemas, SchemaIndex) {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("result.schema.json", schema()).unwrap();
        let index = compiler.compile("result.schema.json", &mut schemas).unwrap();
        (schemas, index)
    }

    #[test]
    fn stored_documents_are_valid() {
        let (schemas, index) = compiled();
        for name in ["assess.json", "assess-unmeasured.json", "jitter.json"] {
            let text = std::fs::read_to_string(results().join(name)).unwrap();
            let stored: Value = serde_json::from_str(&text).unwrap();
            schemas.validate(&stored, index).unwrap_or_else(|error| panic!("{name}: {error}"));
            let read: ResultDocument = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), stored, "{name}, written again");
        }
    }

    #[test]
    fn damaged_documents_and_unknown_kinds_are_invalid() {
        let (schemas, index) = compiled();
        let text = std::fs::read_to_string(results().join("jitter.json")).unwrap();
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
        assert!(!changed(|of| of["measurements"] = serde_json::json!([{ "kind": "of 2031", "x": 1 }])));
    }
}
