//! The example in C, compiled and run as a strategy of a pipeline; and the header by itself.

#[path = "../../trade/tests/runtime/master_thread.rs"]
#[allow(dead_code, clippy::unnecessary_wraps, reason = "other tests use the rest")]
mod master_thread;
#[path = "../../trade/tests/pipeline/threads.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod threads;

use lowlat_trade::{master::Happened, roles};
use master_thread::{MasterThread, until};
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use threads::{QUOTES, STRATEGIES, start_md, start_td};

/// A compiler that is there; else the test says that it is skipped.
fn compiler(test: &str, variable: &str, usual: &str) -> Option<String> {
    let name = env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let is_there = Command::new(&name).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        eprintln!("skipped: {test}: no {name}: install a compiler, or name one in {variable}");
    }
    is_there.then_some(name)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && words.is_empty(), "{command:?}: {}\n{words}", output.status);
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo put the library that it built for this test.
fn library_folder() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(folder.join("liblowlat_capi.so").is_file(), "no library in {}", folder.display());
    folder
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

#[test]
fn the_header_stands_alone_in_c_and_in_cpp() {
    let sources = tempfile::tempdir().unwrap();
    let languages = [
        ("CC", "cc", "x.c", &["-std=c99", "-std=c11"]),
        ("CXX", "c++", "x.cc", &["-std=c++11", "-std=c++17"]),
    ];
    for (variable, usual, file, standards) in languages {
        let Some(compiler) = compiler("the_header_stands_alone_in_c_and_in_cpp", variable, usual) else {
            continue;
        };
        let file = sources.path().join(file);
        // Twice, as programs of several files do. A status compares with 0 in both.
        let text = "#include \"lowlat.h\"\n#include \"lowlat.h\"\n\
                    int main(void) { lowlat_node_options o = lowlat_node_options_default();\n\
                    lowlat_strategy_options s = lowlat_strategy_options_default();\n\
                    return lowlat_leave(NULL) == LOWLAT_STATUS_OK ? 0 : (int)(o.size_bytes + s.size_bytes); }\n";
        std::fs::write(&file, text).unwrap();
        for standard in standards {
            let mut command = Command::new(&compiler);
            command.args(WARNINGS).arg(standard).arg("-I").arg(folder().join("include"));
            run(command.args(["-fsyntax-only"]).arg(&file));
        }
    }
}

#[test]
fn the_example_in_c_answers_every_quote_once() {
    let Some(compiler) = compiler("the_example_in_c_answers_every_quote_once", "CC", "cc") else { return };
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("strategy");
    let library = library_folder();
    let mut command = Command::new(compiler);
    command.args(WARNINGS).args(["-std=c11", "-I"]).arg(folder().join("include"));
    command.arg(folder().join("examples/strategy.c")).arg("-o").arg(&program);
    run(command.arg("-L").arg(&library).arg("-llowlat_capi"));

    let master = MasterThread::start(|options| options.areas = roles::areas());
    let (md, td) = (start_md(&master), start_td(&master));
    let instruments = (0..STRATEGIES).map(|number| number.to_string());
    let child = Command::new(&program)
        .env("LD_LIBRARY_PATH", &library)
        .arg(master.socket())
        .arg("7")
        .args(instruments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    master.expect(
        "the example has joined",
        |it| matches!(it, Happened::Joined { name, .. } if name == "c-strategy"),
    );
    master.begin();
    // A quote, an accepted and a fill each.
    until("all answers are read", || {
        master.with(|master, _| {
            master.counters("c-strategy").is_some_and(|counters| counters.read() == 3 * QUOTES)
        })
    });
    master.with(|master, _| master.stop());
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {words}{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        words.trim_end(),
        format!(
            "quotes {QUOTES} orders {QUOTES} accepted {QUOTES} rejected 0 filled {QUOTES} out-of-order 0 lost 0"
        )
    );
    md.join().unwrap();
    let td = td.join().unwrap();
    let told = (td.orders, td.rejected, td.known, td.missing, td.lost, td.not_orders);
    assert_eq!(told, (QUOTES, 0, 0, 0, 0, 0));
}
