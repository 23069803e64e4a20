//! Output of the commands, as golden transcripts.

use std::{
    fs,
    path::{Path, PathBuf},
};

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("lowlat", crate::common::binary())
        .case("tests/transcripts/*.trycmd")
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1");
}

/// Files in the folder of the documents' commands, by the name that the documents use.
const GIVEN: [(&str, &str); 12] = [
    ("before.tar.gz", "fixtures/hosts/epyc-7f32-stock.tar.gz"),
    ("after.tar.gz", "fixtures/hosts/epyc-7f32-2x8.tar.gz"),
    ("desk7.tar.gz", "fixtures/hosts/epyc-7f32-stock.tar.gz"),
    ("desk8.tar.gz", "fixtures/hosts/smt-2s.tar.gz"),
    ("xeon6.tar.gz", "fixtures/hosts/xeon6-e-2x4-modules.tar.gz"),
    ("run.json", "fixtures/results/jitter.json"),
    ("bios.json", "fixtures/redfish/hpe-ilo5-bios.json"),
    ("registry.json", "fixtures/redfish/hpe-ilo5-registry.json"),
    ("sfnt.txt", "net/model/tests-data/sfnt-pingpong-1.6.0.txt"),
    ("tuned-desk.conf", "fixtures/import/tuned-desk.conf"),
    ("monday", "pipeline/journal/tests/golden/v1"),
    ("tuesday", "pipeline/journal/tests/golden/v1"),
];

/// The capture that documents name as the directory `host`.
const UNPACKED: &str = "fixtures/hosts/epyc-7f32-stock.tar.gz";

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the top of the tree")
}

/// The documents with transcripts: README and every page of docs/.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![top().join("README.md"), top().join("README.zh-CN.md")];
    let mut folders = vec![top().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of docs/").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("a folder");
        for entry in fs::read_dir(from).expect("a folder of fixtures").flatten() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

/// True if transcripts are to be written as they come out now.
fn are_rewritten() -> bool {
    std::env::var("TRYCMD").is_ok_and(|value| value == "overwrite")
}

/// Writes rewritten transcripts back to the documents, also after differences.
struct Back(Vec<(PathBuf, PathBuf)>);

impl Drop for Back {
    fn drop(&mut self) {
        if are_rewritten() {
            for (copied, document) in &self.0 {
                let _ = fs::copy(copied, document);
            }
        }
    }
}

/// Parts of lines that count the catalogue's rows, or name a plan by its content.
const COUNTS: &[&str] = &[
    "Score ",
    " unknown, ",
    "settings of this host differ",
    " more: lowlat audit",
    "desk7.json  ",
    "desk8.json  ",
    "Plan for profile",
    "profile       trading, ",
    "steps         ",
    "# Plan ",
    "Would restore: ",
    "Restored: ",
];

/// A document whose examples accept any count of rows: one more row must not change every document.
fn without_counts(document: &str) -> String {
    let elided = |line: &str| {
        let words = line.split(' ').map(|word| {
            let end = word.trim_end_matches(['.', ',', ':', ';']);
            let is_count = !end.is_empty()
                && end.bytes().all(|byte| byte.is_ascii_hexdigit())
                && end.bytes().any(|byte| byte.is_ascii_digit());
            if is_count { format!("[..]{}", &word[end.len()..]) } else { word.to_owned() }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let lines = document.lines().map(|line| {
        if COUNTS.iter().any(|part| line.contains(part)) { elided(line) } else { line.to_owned() }
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// The commands that documents show in blocks of kind `console`. Each document is copied to a temporary folder with the
/// files that it names. Blocks of kind `console,ignore` show what was recorded on some host.
#[test]
fn transcripts_of_documents() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut back = Back(Vec::new());
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        if !text.contains("```console\n$ ") {
            continue;
        }
        let name =
            document.strip_prefix(top()).expect("a file of the tree").to_string_lossy().replace('/', "--");
        let copied = folder.path().join(&name);
        let files = copied.with_extension("in");
        fs::create_dir_all(&files).expect("a folder");
        if text.contains("--root host") {
            if !rustix::process::geteuid().is_root() {
                eprintln!(
                    "skipped: transcripts of {name}: only root may change a host, even an unpacked one"
                );
                continue;
            }
            let capture = fs::File::open(top().join(UNPACKED)).expect("a capture");
            let unpacked = files.join("host");
            tar::Archive::new(flate2::read::GzDecoder::new(capture))
                .unpack(unpacked)
                .expect("a capture's files");
        }
        for (name, fixture) in GIVEN.iter().filter(|(name, _)| text.contains(name)) {
            copy(&top().join(fixture), &files.join(name));
        }
        fs::write(&copied, if are_rewritten() { text } else { without_counts(&text) }).expect("a copy");
        back.0.push((copied, document));
    }
    assert!(back.0.len() > 20, "{} documents with transcripts: the search finds too few", back.0.len());
    let cases = trycmd::TestCases::new();
    cases.register_bin("lowlat", crate::common::binary()).env("COLUMNS", "80").env("NO_COLOR", "1");
    cases.case(folder.path().join("*.md"));
    cases.run();
}
