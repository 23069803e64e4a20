//! The C example, compiled and run as a strategy of a pipeline, and the header alone.

use crate::compile::{WARNINGS, compiler, folder, library_folder, program, run};
use crate::master_thread::{MasterThread, until};
use crate::threads::{QUOTES, STRATEGIES, start_md, start_td};
use lowlat_trade::{master::Happened, roles};
use std::process::Command;

#[test]
fn the_header_compiles_alone_in_c_and_in_cpp() {
    let sources = tempfile::tempdir().unwrap();
    let languages = [
        ("CC", "cc", "x.c", &["-std=c99", "-std=c11"]),
        ("CXX", "c++", "x.cc", &["-std=c++11", "-std=c++17"]),
    ];
    for (variable, usual, file, standards) in languages {
        let Some(compiler) = compiler("the_header_compiles_alone_in_c_and_in_cpp", variable, usual) else {
            continue;
        };
        let file = sources.path().join(file);
        // Included twice, as happens in programs of several files. A status can be compared with 0 in both
        // languages.
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

/// A program that is linked with the library's file looks for the library's name, not for that path.
#[test]
fn the_library_has_a_name() {
    let test = "the_library_has_a_name";
    let folder_of_it = tempfile::tempdir().unwrap();
    let Some(compiler) = compiler(test, "CC", "cc") else { return };
    let path = folder_of_it.path().join("program");
    let mut command = Command::new(compiler);
    command.arg("-I").arg(folder().join("include")).arg(folder().join("examples/strategy.c"));
    run(command.arg(library_folder().join("liblowlat_capi.so")).arg("-o").arg(&path));
    let Ok(output) = Command::new("readelf").arg("-d").arg(&path).output() else {
        eprintln!("skipped: {test}: no readelf: install binutils");
        return;
    };
    let needed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(needed.contains("[liblowlat_capi.so]"), "{needed}");
}

#[test]
fn pkg_config_finds_the_header_and_the_library() {
    let ask = |word: &str| {
        Command::new("pkg-config").args([word, "lowlat"]).env("PKG_CONFIG_PATH", folder()).output()
    };
    let Ok(version) = ask("--modversion") else {
        eprintln!("skipped: pkg_config_finds_the_header_and_the_library: no pkg-config: install pkg-config");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), env!("CARGO_PKG_VERSION"));
    let flags = String::from_utf8(ask("--cflags").unwrap().stdout).unwrap();
    assert!(
        folder().join("include/lowlat.h").is_file() && flags.contains("pipeline/capi/include"),
        "{flags}"
    );
    let libs = String::from_utf8(ask("--libs").unwrap().stdout).unwrap();
    assert!(libs.contains("target/release") && libs.contains("-llowlat_capi"), "{libs}");
}

#[test]
fn the_example_in_c_answers_every_quote_once() {
    let test = "the_example_in_c_answers_every_quote_once";
    let programs = tempfile::tempdir().unwrap();
    let Some(mut program) = program(test, "examples/strategy.c", programs.path()) else { return };
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let (md, td) = (start_md(&master), start_td(&master));
    let instruments = (0..STRATEGIES).map(|number| number.to_string());
    let child = program.arg(master.socket()).args(instruments).spawn().unwrap();
    master.expect(
        "the example has joined",
        |it| matches!(it, Happened::Joined { name, .. } if name == "c-strategy"),
    );
    master.begin();
    // One quote, one accept and one fill each.
    until("all answers are read", || {
        master.with(|master, _| {
            master.counters("c-strategy").is_some_and(|counters| counters.figures().read == 3 * QUOTES)
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
