//! Output of commands for programs, on stdout and in files.

use crate::common::{self, capture, documents, fixtures, lowlat, text};
use lowlat_journal::record::{Options, Recorder};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A run of each command that has `--json`, in order. `{host}` is a captured host, `{tree}` an unpacked one, `{result}` a
/// result document, `{bios}` saved settings, `{rec}` a recording, `{dir}` an empty directory.
const RUNS: &[&[&str]] = &[
    &["assess", "--no-measure", "--root", "{host}", "--report", "{dir}/a.html", "--result", "{dir}/a.json"],
    &["host", "show", "--root", "{host}"],
    &["host", "capture", "{dir}/host.tar.gz", "--root", "{host}"],
    &["host", "diff", "{host}", "{other}"],
    &["audit", "--root", "{host}"],
    &["audit", "--list"],
    &["audit", "--root", "{host}", "--explain", "sysctl.vm.swappiness"],
    &["cpus", "isolated", "--root", "{host}"],
    &["bios", "audit", "--file", "{bios}"],
    &["bios", "diff", "{bios}", "{bios}"],
    &["bios", "sheet", "--root", "{host}"],
    &["report", "render", "{result}"],
    &["report", "render", "--gate", "max<1000s", "{result}", "{result}"],
    &["watch", "--once", "--interval", "100ms"],
    &["journal", "ls", "{rec}"],
    &["journal", "verify", "{rec}"],
    &["journal", "tail", "{rec}"],
    &["journal", "replay", "{rec}", "--speed", "max"],
    &["journal", "diff", "{rec}", "{rec}", "--stream", "md"],
    &["journal", "export", "{rec}", "--format", "csv", "--out", "{dir}/rec.csv"],
    &["report", "compare", "{result}", "{result}"],
    &["report", "compare", "--pairs", "{result}", "{result}", "{result}", "{result}"],
    &["report", "fleet", "{result}", "{result}"],
    &["tune", "plan", "--list", "--root", "{tree}"],
    &["tune", "plan", "--root", "{tree}"],
    &["tune", "apply", "--root", "{tree}", "--yes"],
    &["tune", "status", "--root", "{tree}"],
    &["tune", "verify", "--root", "{tree}"],
    &["tune", "confirm", "--root", "{tree}"],
    &["tune", "adopt", "--root", "{tree}"],
    &["tune", "rollback", "--root", "{tree}", "--yes"],
    &["import", "tuned", "{conf}", "--root", "{host}"],
    &["net", "nics", "--root", "{host}"],
    &["net", "pingpong", "--reference"],
    &["net", "prepare", "enp65s0", "--root", "{host}", "--dry-run"],
    &["cache", "clock", "--duration", "200ms"],
    &["cache", "false-sharing", "--rounds", "1"],
    &["pipeline", "size", "--check", "2", "--duration", "300ms", "--force"],
    &["workload", "list"],
    &["onload", "status", "--root", "{host}"],
    &["onload", "register", "enp65s0", "--root", "{host}", "--dry-run"],
];

/// Commands that another test runs, with its file.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bios apply", "redfish/controller.rs"),
    ("jitter", "jitter/runs.rs"),
    ("journal record", "journal_record.rs"),
    ("net pingpong client", "net/pingpong.rs"),
    ("net stream client", "net/stream.rs"),
    ("net compare", "net/compare.rs"),
    ("net choose", "net/compare.rs"),
    ("cache c2c", "cache.rs"),
    ("cache clusters", "cache.rs"),
    ("cache partition", "cache_partition.rs"),
    ("cache memory", "cache.rs"),
    ("tune prove", "prove.rs"),
    ("workload run", "workload.rs"),
    ("workload compare", "workload.rs"),
    ("workload article", "workload.rs"),
    ("pipeline run", "pipeline_run.rs"),
    ("pipeline ps", "pipeline_run.rs"),
    ("pipeline matrix", "pipeline_run.rs"),
    ("pipeline exchange", "wire/mod.rs"),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name)
}

/// The commands below these words that have `--json`, from their help.
fn with_json(words: &[String], found: &mut Vec<String>) {
    let help = text(&lowlat(&[words, &["--help".to_owned()]].concat()).stdout);
    if help.lines().any(|line| line.trim_start().starts_with("--json")) {
        found.push(words.join(" "));
    }
    let members = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in members.take_while(|line| !line.is_empty()) {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        let name = name.and_then(|rest| rest.split_whitespace().next()).filter(|name| *name != "help");
        if let Some(name) = name {
            with_json(&[words, &[name.to_owned()]].concat(), found);
        }
    }
}

#[test]
fn every_json_output_names_its_document_and_version() {
    let mut commands = Vec::new();
    with_json(&[], &mut commands);
    assert!(commands.len() > 40, "{commands:?}");
    for command in &commands {
        let words: Vec<&str> = command.split(' ').collect();
        let is_run = RUNS.iter().any(|run| run.starts_with(&words));
        assert!(
            is_run || ELSEWHERE.iter().any(|(name, _)| name == command),
            "no test runs lowlat {command} --json"
        );
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (command, file) in ELSEWHERE {
        let source = fs::read_to_string(tests.join(file)).expect(file);
        let word = command.rsplit(' ').next().unwrap_or_default();
        let is_checked = ["\"--json\"", "\"--result\""].iter().any(|option| source.contains(option));
        assert!(
            is_checked && source.contains(&format!("\"{word}\"")),
            "{file} does not run lowlat {command}"
        );
    }
    let folder = tempfile::tempdir().expect("a directory");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("dir")).expect("a directory");
    common::unpack("epyc-7f32-stock", &at("tree"));
    let mut recorder = Recorder::open(&at("rec"), Options::default()).expect("a recorder");
    recorder.add_stream("md", 1, "lowlat-trade", Some(0)).expect("a stream");
    recorder.stop().expect("a recording");
    let is_root = rustix::process::geteuid().is_root();
    let has_two_cpus = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    for run in RUNS {
        if run[0] == "tune" && !is_root {
            eprintln!("skipped: {run:?}: takes root, since lowlat's files belong to root");
            continue;
        }
        if run[1] == "false-sharing" && !has_two_cpus {
            eprintln!("skipped: {run:?}: one CPU");
            continue;
        }
        let fill = |argument: &&str| {
            [
                ("{host}", capture("epyc-7f32-2x8")),
                ("{other}", capture("epyc-7f32-stock")),
                ("{tree}", at("tree")),
                ("{result}", fixture("results/jitter.json")),
                ("{bios}", fixture("redfish/standard-bios.json")),
                ("{rec}", at("rec")),
                ("{conf}", fixture("import/tuned-desk.conf")),
                ("{dir}", at("dir")),
            ]
            .iter()
            .fold((*argument).to_owned(), |text, (name, path)| {
                text.replace(name, &path.display().to_string())
            })
        };
        let arguments: Vec<String> = run.iter().map(fill).chain(["--json".to_owned()]).collect();
        let output = lowlat(&arguments);
        assert!(matches!(output.status.code(), Some(0 | 1 | 3 | 4)), "{run:?}: {}", text(&output.stderr));
        let printed = documents::all(&output.stdout);
        // Nothing was recorded, so `tail` has no line.
        assert!(!printed.is_empty() || run[1] == "tail", "{run:?}: {}", text(&output.stderr));
        for document in printed {
            documents::is_whole(&document).unwrap_or_else(|error| panic!("{run:?}: {error}"));
        }
    }
}

/// The schema accepts what is written today on every captured host, and its warnings are those on the terminal.
#[test]
fn the_documents_of_all_captured_hosts_are_valid_and_warn_as_the_terminal_does() {
    let folder = tempfile::tempdir().expect("a directory");
    let (page, file) = (folder.path().join("r.html"), folder.path().join("r.json"));
    let truth =
        fs::read_dir(fixture("truth")).expect("captures").filter_map(Result::ok).map(|entry| entry.path());
    let truth = truth.filter(|path| path.extension().is_some_and(|ending| ending == "gz"));
    let hosts = fixtures().into_iter().chain(common::topologies()).map(|(_, host)| host).chain(truth);
    let (mut seen, mut warned) = (0, 0);
    for (at, host) in hosts.enumerate() {
        let profile = ["trading", "guide-57037"][at % 2];
        // `lowlat` checks the written document.
        let run = lowlat(&[
            "assess".as_ref(),
            "--no-measure".as_ref(),
            "--profile".as_ref(),
            profile.as_ref(),
            "--root".as_ref(),
            host.as_os_str(),
            "--report".as_ref(),
            page.as_os_str(),
            "--result".as_ref(),
            file.as_os_str(),
        ]);
        let (shown, errors) = (text(&run.stdout), text(&run.stderr));
        assert_eq!(run.status.code(), Some(0), "{}: {errors}", host.display());
        let document: Value = serde_json::from_slice(&fs::read(&file).expect("the document")).expect("JSON");
        let warnings: Vec<&str> =
            document["warnings"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let head = match warnings.len() {
            1 => "Warning: ".to_owned(),
            count => format!("{count} warnings, first: "),
        };
        assert!(
            shown.contains(&format!("{head}{}", &warnings[0][..20])),
            "{}: {warnings:?}: {shown}",
            host.display()
        );
        let page = fs::read_to_string(&page).expect("the page");
        let section = page.split_once("<section id=\"warnings\"").expect("warnings").1;
        let section = section.split_once("</section>").expect("an end").0;
        assert_eq!(section.matches("<li>").count(), warnings.len(), "{}: {section}", host.display());
        seen += 1;
        warned += usize::from(warnings.len() > 1);
    }
    assert!(seen > 10 && warned > 3, "{seen} hosts, {warned} with several warnings");
}
