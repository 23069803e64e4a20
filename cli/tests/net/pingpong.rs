//! A client and a server as users start them.

use crate::common;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// A server for one run on a free port.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(&["--once"])
    }

    /// A server for any number of runs.
    pub fn start_for_many() -> Self {
        Self::start_with(&[])
    }

    fn start_with(arguments: &[&str]) -> Self {
        let mut child = Command::new(common::binary())
            .args(["net", "server", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(arguments: &[&str]) -> (Option<i32>, String, String) {
    let short = ["--duration", "50ms", "--iterations", "500", "--warm-up", "10ms", "--timeout", "20s"];
    let output = common::lowlat(&[&["net", "pingpong", "client"], arguments, &short].concat());
    (output.status.code(), common::text(&output.stdout), common::text(&output.stderr))
}

fn at(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

#[test]
fn a_run_gives_a_table_a_document_a_page_and_a_log() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let [result, report, hlog] = ["r.json", "r.html", "r.hlog"].map(|name| at(dir.path(), name));
    let (code, text, said) = client(&[
        "tcp",
        &server.address,
        "--sizes",
        "1,32",
        "--result",
        &result,
        "--report",
        &report,
        "--hlog",
        &hlog,
    ]);
    assert_eq!(code, Some(0), "{said}");
    for part in [&format!("tcp to {}, block", server.address), "p99", "Messages go over lo"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let measurement = &document["measurements"][0];
    assert_eq!((&document["command"], &measurement["kind"]), (&"net pingpong".into(), &"pingpong".into()));
    assert_eq!(measurement["record"]["sizes"][1]["figures"]["iterations"], 500);
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("<title>lowlat") && page.contains("Half round trips by size of messages"));
    assert!(!page.contains("Jitter was not measured"), "the page of one measurement is about that");
    let log = std::fs::read_to_string(hlog).unwrap();
    assert!(log.contains("Tag=1B,") && log.contains("Tag=32B,"), "{log}");
    // The document is shown again as text and in both formats of sfnt-pingpong, which the importer reads.
    let again = |form: &str| {
        let output = common::lowlat(&["report", "render", &result, "--format", form]);
        assert_eq!(output.status.code(), Some(0), "{}", common::text(&output.stderr));
        common::text(&output.stdout)
    };
    assert_eq!(again("text"), text);
    for (form, version) in [("sfnt", "1.6.0"), ("sfnt-1.5", "1.5.0")] {
        let file = at(dir.path(), form);
        std::fs::write(&file, again(form)).unwrap();
        let output = common::lowlat(&["net", "pingpong", "--import", &file, "--json"]);
        let logs: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(logs["logs"][0]["rows"][0]["iterations"], 500);
        assert!(logs["logs"][0]["header"].to_string().contains(version), "{logs}");
    }
}

/// An incomplete measurement is not a success, whether the server died or only stopped.
#[test]
fn a_server_that_dies_or_stops_is_told_by_the_exit_code() {
    std::thread::scope(|scope| {
        for (command, transport) in
            [("pingpong", "tcp"), ("pingpong", "udp"), ("stream", "tcp"), ("stream", "udp")]
        {
            scope.spawn(move || {
                for signal in ["-KILL", "-STOP"] {
                    lose_server(command, transport, signal);
                }
            });
        }
    });
}

fn lose_server(command: &str, transport: &str, signal: &str) {
    let mut server = Server::start_for_many();
    let (time, sizes): (&str, &[&str]) =
        if command == "pingpong" { ("60s", &["--sizes", "32,64"]) } else { ("3s", &[]) };
    let client = Command::new(common::binary())
        .args(["net", command, "client", transport, &server.address, "--duration", time])
        .args(sizes)
        .args(["--timeout", "1s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = server.child.id();
    let answers = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name == "lowlat-server\n").count() == 1
    };
    let mut tries = 0;
    while !answers() && tries < 600 {
        std::thread::sleep(Duration::from_millis(50));
        tries += 1;
    }
    std::thread::sleep(Duration::from_millis(300));
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
    let output = client.wait_with_output().unwrap();
    let said = common::text(&output.stdout) + &common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{command} {transport} {signal}: {said}");
    server.child.kill().unwrap();
}

#[test]
fn parts_are_shown_and_kept_in_the_document_and_on_the_page() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let [result, report] = ["r.json", "r.html"].map(|name| at(dir.path(), name));
    let outputs = ["--sizes", "32", "--parts", "--result", &result, "--report", &report];
    let (code, text, said) = client(&[&["udp", &server.address][..], &outputs].concat());
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "Where a round trip of 32 bytes spends its time",
        "server: send call",
        "add up to the measured time",
        "Hardware time stamps: not available",
        "The slowest 100 round trips of 32 bytes",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let size = &document["measurements"][0]["record"]["sizes"][0];
    assert_eq!((&size["lost_count"], &size["parts"]["parts"][0]["part"]), (&0.into(), &"client_send".into()));
    assert!(std::fs::read_to_string(report).unwrap().contains("Where the time goes"));
    let output = common::lowlat(&["report", "render", &result]);
    assert_eq!(common::text(&output.stdout), text);
    let (code, _, said) = client(&["pipe", "--parts"]);
    assert!(
        code == Some(2) && said.contains("cannot be split into parts") && said.contains("\nhint: "),
        "{said}"
    );
}

#[test]
fn both_ends_run_in_one_process_over_unix_sockets() {
    let (code, text, said) =
        client(&["unix-seqpacket", "--sizes", "64", "--muxer", "poll", "--format", "sfnt"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(text.contains("# reporting: 1/2 RTT") && text.contains("\t64\t"), "{text}");
}

#[test]
fn raw_files_hold_every_sample_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = at(dir.path(), "run");
    let arguments = ["unix-datagram", "--sizes", "0,32", "--raw", &prefix, "--json"];
    let (code, text, said) = client(&arguments);
    assert_eq!(code, Some(0), "{said}");
    let document: Value = serde_json::from_str(&text).unwrap();
    for (place, size) in [0, 32].into_iter().enumerate() {
        let file = format!("{prefix}-{size}.dat");
        let samples = std::fs::read_to_string(&file).unwrap();
        let mut samples: Vec<u64> = samples.lines().map(|line| line.parse().unwrap()).collect();
        assert!(said.contains(&format!("wrote {file}")), "{said}");
        let figures = &document["measurements"][0]["record"]["sizes"][place]["figures"];
        assert!(!samples.is_sorted(), "in the order of sending");
        samples.sort_unstable();
        assert_eq!((&figures["iterations"], &figures["min_ns"]), (&500.into(), &samples[0].into()));
        assert_eq!(figures["max_ns"], *samples.last().unwrap());
    }
    // The files are checked before anything is measured.
    let (code, _, said) = client(&["pipe", "--sizes", "1", "--raw", "/nowhere/run"]);
    assert_eq!((code, said.contains("/nowhere") && said.contains("--raw")), (Some(2), true), "{said}");
}

#[test]
fn what_cannot_be_measured_is_refused_before_the_run() {
    for (arguments, parts) in [
        (&["tcp"][..], &["no server named", "hint: name the host"][..]),
        (&["pipe", "10.0.0.2"], &["takes no server"]),
        (&["udp", "10.0.0.2", "--sizes", "65508"], &["udp does not carry messages of 65508 bytes", "hint: "]),
        (&["unix-stream", "--wait", "busy-poll"], &["unix-stream has none"]),
        (&["udp-multicast", "10.0.0.2"], &["--group"]),
        (&["pipe", "--client-cpu", "8000"], &["cannot use CPU 8000"]),
        (&["pipe", "--sizes", "1,x"], &["--sizes: \"x\" is not a size"]),
        (
            &["pipe", "--client-cpu", "0", "--server-cpu", "0", "--wait", "spin"],
            &["spin on CPU 0", "hint: --force"],
        ),
    ] {
        let (code, _, said) = client(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{arguments:?} does not say {part:?}: {said}");
        }
    }
}

#[test]
fn documents_without_round_trips_are_refused() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/results/jitter.json");
    let output = common::lowlat(&["report", "render", fixture.to_str().unwrap(), "--format", "sfnt"]);
    let said = common::text(&output.stderr);
    assert!(said.contains("has no such measurement"), "{said}");
}
