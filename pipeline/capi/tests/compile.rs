//! Compiles C programs against the library built by cargo.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

/// An installed compiler; without one the test prints that it is skipped.
pub fn compiler(test: &str, variable: &str, usual: &str) -> Option<String> {
    let name = env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let is_installed = Command::new(&name).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_installed {
        eprintln!("skipped: {test}: no {name}: install a compiler, or name one in {variable}");
    }
    is_installed.then_some(name)
}

pub fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && words.is_empty(), "{command:?}: {}\n{words}", output.status);
}

/// The directory of this crate.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directory of the library that cargo built for this test.
pub fn library_folder() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(folder.join("liblowlat_capi.so").is_file(), "no library in {}", folder.display());
    folder
}

/// A compiled program from this source, to be run with the library; `None` without a compiler.
pub fn program(test: &str, source: &str, folder_of_it: &Path) -> Option<Command> {
    let compiler = compiler(test, "CC", "cc")?;
    let library = library_folder();
    let path = folder_of_it.join("program");
    let mut command = Command::new(compiler);
    command.args(WARNINGS).args(["-std=c11", "-I"]).arg(folder().join("include"));
    command.arg(folder().join(source)).arg("-o").arg(&path);
    run(command.arg("-L").arg(&library).args(["-llowlat_capi", "-lpthread"]));
    let mut program = Command::new(path);
    program.env("LD_LIBRARY_PATH", library).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(program)
}
