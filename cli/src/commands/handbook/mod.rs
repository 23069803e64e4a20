//! Tests of the documents: their command lines are parsed, and the handbook has a page for each command.
//!
//! `INSTA_UPDATE=always cargo test -p lowlat --bin lowlat handbook` writes the pages of the tree again, and `cargo
//! xtask handbook` the handbook, which has each command's help too.

mod lines;
mod pages;
mod summary;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folders of the tree that hold crates.
const FOLDERS: &[&str] = &["cli", "cores", "frame", "host", "jitter", "net", "pipeline", "results", "tune"];

/// The top of the tree.
fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the top of the tree")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of this ending below a directory, sorted. Directories of these names are left out.
fn files_below(folder: &Path, ending: &str, without: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if !path.is_dir() {
            found.extend(path.extension().is_some_and(|of| of == ending).then_some(path));
        } else if !without.iter().any(|name| path.ends_with(name)) {
            found.extend(files_below(&path, ending, without));
        }
    }
    found.sort();
    found
}

/// The Markdown files below a directory, sorted.
fn markdown_below(folder: &Path) -> Vec<PathBuf> {
    files_below(folder, "md", &[])
}

/// Returns the READMEs, the guides beside them, and every page below docs/.
fn documents() -> Vec<PathBuf> {
    let of_crates =
        FOLDERS.iter().flat_map(|folder| fs::read_dir(top().join(folder)).expect("a folder").flatten());
    let of_crates = of_crates.map(|entry| entry.path().join("README.md")).filter(|path| path.is_file());
    let single = ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "lab/README.md"];
    let single = single.into_iter().chain(["benches/peers/README.md"]).map(|name| top().join(name));
    single.chain(of_crates).chain(markdown_below(&top().join("docs"))).collect()
}

/// Compares a generated text with its file, or writes the file.
fn is_same(path: &Path, text: &str) -> bool {
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        fs::write(path, text).expect("the page can be written");
    }
    fs::read_to_string(path).is_ok_and(|present| present == text)
}
