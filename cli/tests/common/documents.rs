//! Checks of every document for programs.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Deserializer, Value};
use std::{ffi::OsStr, process::Output, sync::LazyLock};

/// The schema of result documents.
static SCHEMA: LazyLock<(Schemas, SchemaIndex)> = LazyLock::new(|| {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("result.schema.json", lowlat_results::schema::schema()).expect("a schema");
    let index = compiler.compile("result.schema.json", &mut schemas).expect("a schema");
    (schemas, index)
});

/// Checks that a document names its kind and version, and that a result document is as the schema says.
pub fn is_whole(document: &Value) -> Result<(), String> {
    let (kind, version) = (document["document"].as_str(), document["schema_version"].as_u64());
    let (Some(kind), Some(1..)) = (kind, version) else {
        let text = document.to_string();
        let start = text.char_indices().nth(200).map_or(text.as_str(), |(end, _)| &text[..end]);
        return Err(format!("no document and schema_version: {start}"));
    };
    match kind {
        "lowlat-result" => SCHEMA.0.validate(document, SCHEMA.1).map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

/// Every JSON text in bytes, one after the other.
pub fn all(bytes: &[u8]) -> Vec<Value> {
    let found = Deserializer::from_slice(bytes).into_iter();
    found.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {}", super::text(bytes)))
}

/// Checks what a command printed with --json, and the file of --result.
pub fn check<S: AsRef<OsStr>>(arguments: &[S], output: &Output) {
    if output.status.code().is_none_or(|code| code == 2) {
        return;
    }
    let words: Vec<String> =
        arguments.iter().map(|word| word.as_ref().to_string_lossy().into_owned()).collect();
    // --json of `pipeline matrix` names a file.
    let is_json = words.iter().any(|word| word == "--json") && output.stdout.starts_with(b"{");
    let printed = if is_json { all(&output.stdout) } else { Vec::new() };
    let file = words.iter().position(|word| word == "--result").and_then(|at| words.get(at + 1));
    let written = file.and_then(|file| std::fs::read(file).ok()).map(|bytes| all(&bytes)).unwrap_or_default();
    for document in printed.iter().chain(&written) {
        is_whole(document).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
}
