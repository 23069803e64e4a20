//! Programs and libraries that use counters, as cargo builds them.
#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Builds `programs/` with flags for the compiler, and returns where they are.
fn build(name: &str, flags: &str, what: &[&str]) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let source = |name: &str| own.join("tests/programs").join(name).display().to_string();
    let path = own.display().to_string();
    let manifest = format!(
        "[package]\nname = \"users\"\nedition = \"2024\"\n[workspace]\n\
         [profile.dev]\npanic = \"abort\"\n\
         [dependencies]\nlibc = \"0.2\"\nlowlat-counter = {{ path = {path:?} }}\n\
         [lib]\nname = \"plugin\"\ncrate-type = [\"cdylib\"]\npath = {:?}\n\
         [[bin]]\nname = \"host\"\npath = {:?}\n[[bin]]\nname = \"program\"\npath = {:?}\n",
        source("plugin.rs"),
        source("host.rs"),
        source("program.rs"),
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(own.join("../../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--offline",
            "--quiet",
            "--target",
            "x86_64-unknown-linux-gnu",
            "--target-dir",
            "target",
        ])
        .args(what)
        .current_dir(&folder)
        .env("RUSTFLAGS", flags)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join("target/x86_64-unknown-linux-gnu/debug")
}

/// Runs a program with glibc's registration or without. Returns what it printed.
fn run(program: &Path, arguments: &[&Path], is_glibc_registering: bool) -> String {
    let tunable = format!("glibc.pthread.rseq={}", u8::from(is_glibc_registering));
    let output = Command::new(program).args(arguments).env("GLIBC_TUNABLES", tunable).output().unwrap();
    assert!(output.status.success(), "{}, {is_glibc_registering}: {output:?}", program.display());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn threads_live_on_after_the_library_with_the_counter_was_unloaded() {
    let built = build("unloaded", "", &["--lib", "--bin", "host"]);
    for is_glibc_registering in [true, false] {
        let printed = run(&built.join("host"), &[&built.join("libplugin.so")], is_glibc_registering);
        if is_glibc_registering && !printed.contains("mapped: false") {
            eprintln!("skipped: threads_live_on_after: the library stays in memory: {printed}");
        }
        assert_eq!(
            printed.contains("restartable: true"),
            lowlat_counter::is_restartable(),
            "{is_glibc_registering}: {printed}"
        );
    }
}

#[test]
fn static_programs_count_in_restartable_sequences_as_others_do() {
    let library = Command::new("cc").arg("-print-file-name=libc.a").output();
    if !library.is_ok_and(|output| output.stdout.starts_with(b"/")) {
        eprintln!("skipped: static_programs_count: no static C library, or no cc");
        return;
    }
    for (name, flags) in [
        ("static", "-Ctarget-feature=+crt-static"),
        ("static-no-pie", "-Ctarget-feature=+crt-static -Crelocation-model=static"),
    ] {
        let built = build(name, flags, &["--bin", "program"]);
        for is_glibc_registering in [true, false] {
            let printed = run(&built.join("program"), &[], is_glibc_registering);
            let here = lowlat_counter::is_restartable();
            assert_eq!(printed, format!("restartable: {here}\n"), "{name}, {is_glibc_registering}");
        }
    }
}
