//! The handbook's tutorial: its programs are those of the examples, and they trade in a pipeline that runs.

use crate::common::{self, running::Running};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// A page of the tutorial, the language of its block, and the file of the program in it.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("docs/tutorial/python.md", "python", "pipeline/python/examples/first_strategy.py"),
    ("docs/tutorial/c.md", "c", "pipeline/capi/examples/first_strategy.c"),
    ("docs/tutorial/rust.md", "rust", "pipeline/node/examples/first_strategy.rs"),
];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `INSTA_UPDATE=always` writes the programs into the pages.
#[test]
fn the_tutorial_shows_the_programs_that_run() {
    for (page, language, file) in PROGRAMS {
        let program = fs::read_to_string(top().join(file)).expect("the program");
        let present = fs::read_to_string(top().join(page)).expect("the page");
        let fence = format!("```{language}\n");
        let start = present.find(&fence).expect("a block of the language") + fence.len();
        // From the line break before the program, so that an empty block ends too.
        let end = start + present[start - 1..].find("\n```\n").expect("its end");
        let text = format!("{}{program}{}", &present[..start], &present[end..]);
        if env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
            fs::write(top().join(page), &text).expect("the page can be written");
        }
        let present = fs::read_to_string(top().join(page)).expect("the page");
        assert_eq!(present, text, "{page} does not show {file}; INSTA_UPDATE=always writes it");
    }
}

/// A run with this name, as the tutorial starts it, and the path of its master's socket.
fn desk(folder: &Path) -> (Running, PathBuf) {
    let mut command = Command::new(common::binary());
    command.args([
        "pipeline",
        "run",
        "--strategies",
        "4",
        "--rate",
        "400",
        "--duration",
        "100s",
        "--name",
        "desk",
    ]);
    command.env("XDG_RUNTIME_DIR", folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(Some(command.spawn().expect("the run starts")));
    let socket = folder.join("lowlat/desk/master.sock");
    while !socket.exists() {
        let ended = running.0.as_mut().and_then(|run| run.try_wait().expect("its state"));
        assert!(ended.is_none(), "the run ended before it opened its socket: {ended:?}");
        thread::sleep(Duration::from_millis(20));
    }
    (running, socket)
}

/// Runs a program as a strategy of a run, ends the run, and checks what the strategy did.
fn trades(mut program: Command, folder: &Path) {
    let (mut run, socket) = desk(folder);
    program.arg(socket).arg("3").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut strategy = program.spawn().expect("the strategy starts");
    let mut lines = BufReader::new(strategy.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().and_then(Result::ok);
    let joined = line();
    // Time for some hundreds of quotes; a busy host needs more than an idle one.
    thread::sleep(Duration::from_secs(10));
    let run = run.0.take().expect("the run");
    kill_process(Pid::from_child(&run), Signal::INT).expect("the run is interrupted");
    let ended = run.wait_with_output().expect("the run ends");
    let counts = line().unwrap_or_default();
    let output = strategy.wait_with_output().expect("the strategy ends");
    let errors = common::text(&output.stderr);
    assert_eq!(joined.as_deref(), Some("joined"), "{errors}{}", common::text(&ended.stderr));
    assert!(output.status.success(), "{}: {errors}", output.status);
    let numbers: Vec<u64> = counts.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [quotes, orders] = numbers[..] else { panic!("{counts:?} {errors}") };
    assert!(orders > 0 && orders < quotes, "{counts}: an order for some of the quotes");
}

/// The directory of the libraries that cargo built for this test.
fn libraries() -> PathBuf {
    env::current_exe().expect("this test").parent().expect("its directory").to_owned()
}

#[test]
fn the_strategy_in_c_trades() {
    let test = "the_strategy_in_c_trades";
    let folder = tempfile::tempdir().expect("a folder");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    if Command::new(&compiler).arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: {test}: no {compiler}: install a compiler, or name one in CC");
        return;
    }
    let program = folder.path().join("strategy");
    let mut compile = Command::new(&compiler);
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(top().join("pipeline/capi/include"));
    compile.arg(top().join(PROGRAMS[1].2)).arg("-o").arg(&program);
    compile.arg("-L").arg(libraries()).args(["-llowlat_capi", "-lpthread"]);
    let output = compile.output().expect("the compiler runs");
    assert!(output.status.success(), "{}", common::text(&output.stderr));
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", libraries());
    trades(command, folder.path());
}

#[test]
fn the_strategy_in_rust_trades() {
    let test = "the_strategy_in_rust_trades";
    let program = libraries().join("../examples/first_strategy");
    if !program.is_file() {
        eprintln!("skipped: {test}: not built: cargo build -p lowlat-node --example first_strategy");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    trades(Command::new(program), folder.path());
}

#[test]
fn the_strategy_in_python_trades() {
    let test = "the_strategy_in_python_trades";
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let built = libraries().join("liblowlat_python.so");
    if !built.is_file() {
        eprintln!("skipped: {test}: not built: cargo test -p lowlat-python --no-run");
        return;
    }
    if Command::new(&python).arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: {test}: no {python}: install one, or name one in PYTHON");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(built, folder.path().join("lowlat.abi3.so")).expect("the module");
    let mut command = Command::new(python);
    command
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(top().join(PROGRAMS[0].2));
    trades(command, folder.path());
}
