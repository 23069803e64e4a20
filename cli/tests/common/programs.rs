//! Programs that tests write and then run.
//!
//! Other processes write them. A program that is open for writing cannot be executed, and a process that a test in
//! another thread forks inherits the open file until it calls exec.

use super::binary;
use std::{path::Path, process::Command};

/// Writes a program that every user may run.
pub fn write_program(path: &Path, text: &str) {
    run(Command::new("sh")
        .args(["-c", "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", text])
        .arg(path));
}

/// Copies the binary under test to a place where every user may run it.
pub fn copy_binary(to: &Path) {
    run(Command::new("install").args(["--mode", "755"]).arg(binary()).arg(to));
}

fn run(command: &mut Command) {
    let status = command.status().expect("a program of Debian");
    assert!(status.success(), "{command:?}");
}
