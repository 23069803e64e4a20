//! Names of hosts, titles and notes in documents and pages.

use crate::common::{self, text};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A host named desk7.lab in a directory that is named after it.
fn desk7(dir: &Path) -> PathBuf {
    let root = dir.join("desk7");
    common::unpack("epyc-7f32-stock", &root);
    // The capture was redacted; this host was not.
    let _ = fs::remove_file(root.join(".lowlat/manifest.json"));
    fs::write(root.join("proc/sys/kernel/hostname"), "desk7.lab\n").unwrap();
    let line = fs::read_to_string(root.join("proc/cmdline")).unwrap();
    fs::write(root.join("proc/cmdline"), format!("{} systemd.hostname=desk7 desk77=1\n", line.trim()))
        .unwrap();
    root
}

fn lowlat(dir: &Path, arguments: &[&str]) -> (String, String) {
    let output = Command::new(common::binary()).args(arguments).current_dir(dir).output().unwrap();
    assert!(output.status.code().unwrap() < 2, "{arguments:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn assess(dir: &Path, name: &str, more: &[&str]) -> (Value, String) {
    let (result, report) = (format!("{name}.json"), format!("{name}.html"));
    let arguments = ["assess", "--root", "desk7", "--no-measure", "--result", &result, "--report", &report];
    lowlat(dir, &[&arguments, more].concat());
    let document = fs::read_to_string(dir.join(result)).unwrap();
    (serde_json::from_str(&document).unwrap(), fs::read_to_string(dir.join(report)).unwrap())
}

const WORDS: [&str; 4] = ["--title", "Before <b>", "--note", "BIOS 2.1, rack 4"];

#[test]
fn documents_and_pages_have_name_title_and_note() {
    let dir = tempfile::tempdir().unwrap();
    desk7(dir.path());
    let (document, page) = assess(dir.path(), "before", &WORDS);
    assert_eq!((&document["host_name"], &document["title"]), (&"desk7.lab".into(), &"Before <b>".into()));
    assert_eq!(document["note"], "BIOS 2.1, rack 4");
    assert!(page.contains("<title>lowlat: Before &lt;b&gt;, desk7.lab, "), "{}", &page[..2000]);
    for line in ["<p>Before &lt;b&gt;</p>", "<p>desk7.lab</p>", "<p>BIOS 2.1, rack 4</p>"] {
        assert!(page.contains(line), "{line}");
    }
    let (plain, _) = assess(dir.path(), "plain", &[]);
    assert_eq!((&plain["host_name"], plain.get("title")), (&"desk7.lab".into(), None));
    // Pages of documents have their labels, or others.
    lowlat(dir.path(), &["report", "render", "before.json", "--report", "again.html", "--title", "After"]);
    let again = fs::read_to_string(dir.path().join("again.html")).unwrap();
    assert!(again.contains("<title>lowlat: After, desk7.lab, ") && again.contains("rack 4"));
    let (rendered, _) = lowlat(dir.path(), &["report", "render", "before.json", "--format", "markdown"]);
    assert!(rendered.contains("- Host name: desk7.lab\n- Note: BIOS 2.1, rack 4\n"), "{rendered}");
    for (command, file) in [("compare", "compare.html"), ("fleet", "fleet.html"), ("render", "render.html")] {
        let of = ["report", command, "before.json", "plain.json", "--report", file];
        lowlat(dir.path(), &[&of[..], &WORDS].concat());
        let page = fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(page.contains("<title>lowlat: Before &lt;b&gt;, ") && page.contains("rack 4"), "{command}");
    }
    let (compared, _) =
        lowlat(dir.path(), &["report", "compare", "before.json", "plain.json", "--json", "--note", "N"]);
    let compared: Value = serde_json::from_str(&compared).unwrap();
    assert_eq!((&compared["host_name"], &compared["note"]), (&"desk7.lab".into(), &"N".into()));
}

#[test]
fn a_name_is_left_out_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    desk7(dir.path());
    let (named, page) = assess(dir.path(), "desk7-a", &[]);
    assert!(named.to_string().contains("systemd.hostname=desk7") && page.contains("desk7"));
    let (document, page) = assess(dir.path(), "other", &["--anonymous", "--title", "T"]);
    // Another word that starts with it stays.
    let rest = document.to_string();
    assert!(rest.contains("desk77=1") && rest.contains("systemd.hostname=host"));
    for text in [rest, page] {
        assert!(!text.replace("desk77", "").contains("desk7"), "{text}");
    }
    assert_eq!((document.get("host_name"), &document["title"]), (None, &"T".into()));
    assert_eq!(document["audit"], named["audit"]);
    // Files are named after hosts.
    for command in ["compare", "fleet", "render"] {
        let files = ["report", command, "desk7-a.json", "other.json", "--anonymous"];
        let (shown, _) = lowlat(dir.path(), &files);
        lowlat(dir.path(), &[&files[..], &["--report", "page.html"]].concat());
        for text in [shown, fs::read_to_string(dir.path().join("page.html")).unwrap()] {
            assert!(!text.replace("desk77", "").contains("desk7"), "{command}: {text}");
        }
    }
}

/// A name that is also a word of lowlat's would damage the document.
#[test]
fn an_ordinary_word_as_a_name_damages_nothing() {
    for name in ["net", "trading"] {
        let dir = tempfile::tempdir().unwrap();
        let root = desk7(dir.path());
        let named = assess(dir.path(), "named", &[]).0;
        fs::write(root.join("proc/sys/kernel/hostname"), format!("{name}\n")).unwrap();
        let (document, _) = assess(dir.path(), "other", &["--anonymous"]);
        assert_eq!(document.get("host_name"), None, "{name}");
        assert_eq!(document["audit"], named["audit"], "{name}");
    }
}
