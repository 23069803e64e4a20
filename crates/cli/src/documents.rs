//! Result documents that were written before.

use anyhow::{Context, bail};
use lowlat_result::ResultDocument;
use std::path::Path;

/// Reads a document and checks that this version understands it.
pub fn read(path: &Path) -> anyhow::Result<ResultDocument> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .with_context(|| format!("cannot read {shown}; name a document that --result or --json wrote"))?;
    let head: Head = serde_json::from_slice(&bytes).with_context(|| not_a_document(path))?;
    if head.document != ResultDocument::DOCUMENT {
        bail!("{}: it calls itself \"{}\"", not_a_document(path), head.document);
    }
    if head.schema_version > ResultDocument::SCHEMA_VERSION {
        bail!(
            "{shown} has version {} of the document, and this lowlat knows up to {}; use the lowlat that wrote it ({})",
            head.schema_version,
            ResultDocument::SCHEMA_VERSION,
            head.lowlat_version
        );
    }
    serde_json::from_slice(&bytes).with_context(|| format!("{shown} is damaged"))
}

#[derive(serde::Deserialize)]
struct Head {
    document: String,
    schema_version: u32,
    lowlat_version: String,
}

fn not_a_document(path: &Path) -> String {
    format!("{} is no result document of lowlat; name one that --result or --json wrote", path.display())
}
