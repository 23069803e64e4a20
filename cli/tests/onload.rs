//! `lowlat onload` with stand-ins for the vendor's programs: no test needs a card.

use crate::common::{binary, programs::write_program, text};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A folder with stand-ins for programs that write their calls into `calls`, and an archive of a release.
struct Vendor {
    folder: tempfile::TempDir,
}

const RELEASE: &str = "openonload-201811-u1";

impl Vendor {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let vendor = Self { folder };
        fs::create_dir_all(vendor.path("bin")).unwrap();
        let scripts = vendor.path(&format!("tree/{RELEASE}/scripts"));
        fs::create_dir_all(&scripts).unwrap();
        for name in [
            "onload_tool",
            "onload_uninstall",
            "sfupdate",
            "modprobe",
            "modinfo",
            "rpm",
            "apt-get",
            "dpkg-query",
            "update-initramfs",
            "userdel",
        ] {
            vendor.program(&vendor.path("bin").join(name), "");
        }
        // What the installation makes.
        let folder = vendor.path("made").display().to_string();
        vendor.program(&vendor.path("bin/find"), &format!("echo /etc; [ ! -d {folder} ] || echo {folder}\n"));
        vendor.program(&vendor.path("bin/getent"), &format!("[ -d {folder} ]\n"));
        vendor.program(
            &vendor.path("bin/sfboot"),
            "echo '  Firmware variant      Full feature / virtualization'\n",
        );
        vendor.program(&scripts.join("onload_build"), "echo building\n");
        vendor.program(&scripts.join("onload_install"), &format!("mkdir -p {folder}\n"));
        let notes = " This package can be installed on:\n - Linux kernels 2.6 - 2.7\n\n";
        fs::write(vendor.path(&format!("tree/{RELEASE}/ReleaseNotes")), notes).unwrap();
        let demos = vendor.path(&format!("tree/{RELEASE}/build/gnu_x86_64/tests/ef_vi"));
        fs::create_dir_all(&demos).unwrap();
        fs::write(demos.join("GNUmakefile"), "all:\n\tcp /bin/echo eflatency\nclean:\n\trm -f eflatency\n")
            .unwrap();
        let sources = vendor.path(&format!("tree/{RELEASE}/src/tests/ef_vi"));
        fs::create_dir_all(&sources).unwrap();
        fs::write(sources.join("mmake.mk"), "TEST_APPS := efsend efsink \\\n\t eflatency stats\n").unwrap();
        vendor.pack();
        vendor
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn program(&self, path: &Path, body: &str) {
        let calls = self.path("calls");
        let script = format!("#!/bin/sh\necho \"$(basename $0) $*\" >> {}\n{body}", calls.display());
        write_program(path, &script);
    }

    fn archive(&self) -> PathBuf {
        self.path(&format!("{RELEASE}.tgz"))
    }

    fn pack(&self) {
        let packed = Command::new("tar")
            .args(["-czf", &self.archive().display().to_string(), "-C"])
            .args([&self.path("tree").display().to_string(), RELEASE])
            .status();
        assert!(packed.unwrap().success());
    }

    fn onload(&self, arguments: &[&str]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(binary());
        command.arg("onload").args(arguments).env("PATH", path).env_remove("SSH_CONNECTION");
        command.output().expect("the binary starts")
    }

    fn install(&self, more: &[&str]) -> Output {
        let (archive, into, log) = (self.archive(), self.path("src"), self.path("log"));
        fs::create_dir_all(&into).unwrap();
        let named = [archive, into, log].map(|path| path.display().to_string());
        self.onload(&[&["install", &named[0], "--into", &named[1], "--log", &named[2]], more].concat())
    }

    /// Calls of the stand-ins, without queries.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let is_query = |line: &str| {
            ["rpm -q", "dpkg-query", "apt-get -s", "modinfo", "find", "getent"]
                .iter()
                .any(|query| line.starts_with(query))
                // The second line of a query's format.
                || line.starts_with(' ')
                || line.starts_with("sfboot") && !line.contains("firmware-variant=")
        };
        let calls = calls.lines().map(|line| line.trim_end().to_owned());
        calls.filter(|line| !line.is_empty() && !is_query(line)).collect()
    }
}

#[test]
fn an_installation_runs_the_vendors_programs_in_order_and_logs_them() {
    let vendor = Vendor::new();
    let planned = vendor.install(&["--dry-run"]);
    assert_eq!(planned.status.code(), Some(0), "{}", text(&planned.stderr));
    assert!(text(&planned.stdout).contains("onload_tool reload") && vendor.calls().is_empty());
    let sum = Command::new("md5sum").arg(vendor.archive()).output().unwrap().stdout;
    fs::write(vendor.path(&format!("{RELEASE}.tgz.md5")), sum).unwrap();
    let done = vendor.install(&["--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(vendor.calls(), ["onload_build", "onload_install --nobuild", "onload_tool reload"]);
    let log = fs::read_to_string(vendor.path("log")).unwrap();
    for part in ["building", "./onload_install", "undo: lowlat onload uninstall", "undo: onload_tool unload"]
    {
        assert!(log.contains(part), "{part}: {log}");
    }
    let said = text(&done.stderr);
    assert!(said.contains(": not supported: its release notes name Linux kernels 2.6 - 2.7\n"), "{said}");
}

#[test]
fn a_failed_step_ends_the_installation_with_its_output() {
    let vendor = Vendor::new();
    let build = vendor.path(&format!("tree/{RELEASE}/scripts/onload_build"));
    vendor.program(&build, "echo 'no kernel headers'\nexit 2\n");
    vendor.pack();
    let failed = vendor.install(&["--yes"]);
    let error = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(2));
    assert!(
        error.contains("cannot build the driver and the libraries: ./onload_build ended with exit status: 2"),
        "{error}"
    );
    assert!(error.contains("  no kernel headers\n"), "{error}");
    assert_eq!(vendor.calls(), ["onload_build"], "nothing after it is run");
}

#[test]
fn damaged_and_unknown_archives_are_refused() {
    let vendor = Vendor::new();
    fs::write(vendor.path(&format!("{RELEASE}.tgz.md5")), "0123 x\n").unwrap();
    let damaged = vendor.install(&["--yes"]);
    assert!(text(&damaged.stderr).contains("its MD5 sum is "), "{}", text(&damaged.stderr));
    let other = vendor.onload(&["install", "/tmp/sfnettest-1.5.0.tgz"]);
    assert!(text(&other.stderr).contains("its name is not that of a release"), "{}", text(&other.stderr));
    assert_eq!((damaged.status.code(), other.status.code()), (Some(2), Some(2)));
    assert_eq!(vendor.calls(), [""; 0]);
}

#[test]
fn firmware_is_written_after_a_question_only() {
    let vendor = Vendor::new();
    let log = vendor.path("log").display().to_string();
    let asked = vendor.onload(&["firmware", "enp1s0f1", "--log", &log]);
    assert!(text(&asked.stderr).contains("hint: pass --yes"), "{}", text(&asked.stderr));
    assert_eq!(vendor.calls(), [""; 0]);
    let done = vendor.onload(&["firmware", "enp1s0f1", "--update", "--yes", "--log", &log]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(
        vendor.calls(),
        [
            "sfupdate --adapter=enp1s0f1 --write --yes",
            "sfboot --adapter=enp1s0f1 firmware-variant=ultra-low-latency"
        ]
    );
    assert!(text(&done.stderr).contains("Reboot to complete it."));
}

#[test]
fn another_card_s_firmware_is_left_alone() {
    let vendor = Vendor::new();
    let output = vendor.onload(&["firmware", "lo", "--yes"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("it is not a Solarflare card") && said.contains("hint:"), "{said}");
    assert_eq!(vendor.calls(), [""; 0]);
}

#[test]
fn removal_names_the_packages_that_own_the_files() {
    let vendor = Vendor::new();
    // The kernel's own driver belongs to the kernel's package.
    let modules = "case $2 in\nsfc) echo /lib/modules/6.1/extra/sfc.ko;;\nsfc_char) echo /lib/modules/6.1/kernel/drivers/sfc_char.ko;;\n*) exit 1;;\nesac\n";
    vendor.program(&vendor.path("bin/modinfo"), modules);
    let owners = "[ \"$1\" = -qf ] || exit 0\ncase $4 in\n*/extra/sfc.ko) echo kernel-module-sfc-RHEL7;;\n*/kernel/*) echo kernel;;\n*) exit 1;;\nesac\n";
    vendor.program(&vendor.path("bin/rpm"), owners);
    let log = vendor.path("log").display().to_string();
    let done = vendor.onload(&["uninstall", "--yes", "--log", &log]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let expected =
        ["onload_tool unload", "rpm -e kernel-module-sfc-RHEL7", "onload_uninstall", "update-initramfs -u"];
    assert_eq!(vendor.calls(), expected);
    // What is left after it is a known state.
    for gone in ["onload_tool", "onload_uninstall", "rpm", "modinfo"] {
        vendor.program(&vendor.path("bin").join(gone), "exit 1\n");
        if gone.starts_with("onload") {
            fs::remove_file(vendor.path("bin").join(gone)).unwrap();
        }
    }
    let again = vendor.onload(&["uninstall", "--yes", "--log", &log]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(text(&again.stdout), "Onload is not installed: nothing to remove.\n");
    assert_eq!(vendor.calls(), expected);
}

#[test]
fn removal_takes_what_the_log_names() {
    let vendor = Vendor::new();
    assert_eq!(vendor.install(&["--yes"]).status.code(), Some(0));
    let [release, made, log] =
        [vendor.path(&format!("src/{RELEASE}")), vendor.path("made"), vendor.path("log")];
    assert!(release.is_dir() && made.is_dir());
    vendor.program(&vendor.path("bin/rpm"), "exit 1\n");
    vendor.program(&vendor.path("bin/dpkg-query"), "exit 1\n");
    vendor.program(&vendor.path("bin/modinfo"), "exit 1\n");
    let uninstall =
        |more: &[&str]| vendor.onload(&[&["uninstall", "--log", &log.display().to_string()], more].concat());
    let planned = text(&uninstall(&["--dry-run"]).stdout);
    assert!(planned.contains("rm -r") && planned.contains("userdel onload_cplane"), "{planned}");
    assert!(!planned.contains("stay"), "{planned}");
    let done = uninstall(&["--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(!release.exists() && !made.exists());
    assert_eq!(vendor.calls().last().map(String::as_str), Some("userdel onload_cplane"));
    // A folder that is in use, or gone meanwhile, ends nothing; without the log, the plan says what stays.
    fs::create_dir_all(made.join("others")).unwrap();
    assert_eq!(uninstall(&["--yes"]).status.code(), Some(0));
    assert!(made.join("others").is_dir());
    fs::remove_file(&log).unwrap();
    let planned = text(&uninstall(&["--dry-run"]).stdout);
    assert!(
        planned.contains("the user onload_cplane and empty folders stay: no log names them"),
        "{planned}"
    );
}

#[test]
fn packages_are_known_by_name_too() {
    let vendor = Vendor::new();
    for gone in ["onload_tool", "onload_uninstall"] {
        fs::remove_file(vendor.path("bin").join(gone)).unwrap();
    }
    vendor.program(&vendor.path("bin/rpm"), "exit 1\n");
    vendor.program(&vendor.path("bin/modinfo"), "exit 1\n");
    let state = "[ \"$1\" = -W ] || exit 1\ncase $4 in\nonload-dkms) printf installed;;\nsfutils) printf config-files;;\n*) exit 1;;\nesac\n";
    vendor.program(&vendor.path("bin/dpkg-query"), state);
    let log = vendor.path("log").display().to_string();
    let done = vendor.onload(&["uninstall", "--yes", "--log", &log]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(vendor.calls(), ["apt-get remove -y onload-dkms", "update-initramfs -u"]);
}

#[test]
fn a_bundle_is_opened_for_the_archive_in_it() {
    let vendor = Vendor::new();
    let listing = format!(
        "case $1 in\n-Z1) echo 'b/readme.txt\nb/{RELEASE}.tgz' ;;\n-p) cat {archive} ;;\n*) cp {archive} {} ;;\nesac\n",
        vendor.path("src").display(),
        archive = vendor.archive().display(),
    );
    vendor.program(&vendor.path("bin/unzip"), &listing);
    let bundle = vendor.path("SF-109585-LS-53.zip");
    fs::write(&bundle, "").unwrap();
    fs::create_dir_all(vendor.path("src")).unwrap();
    let named = [bundle, vendor.path("src"), vendor.path("log")].map(|path| path.display().to_string());
    let done = vendor.onload(&["install", &named[0], "--into", &named[1], "--log", &named[2], "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let calls = vendor.calls();
    assert!(calls[2].starts_with("unzip -q -o -j ") && calls[3] == "onload_build", "{calls:?}");
    assert!(text(&done.stderr).contains("not supported: its release notes name"), "{}", text(&done.stderr));
}

#[test]
fn packages_are_installed_by_their_manager() {
    let vendor = Vendor::new();
    let log = vendor.path("log").display().to_string();
    let install = |files: &[&str]| vendor.onload(&[&["install", "--yes", "--log", &log], files].concat());
    let done = install(&["/d/onload-user_9.2.1_amd64.deb", "/d/onload-dkms_9.2.1_all.deb"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let apt = "apt-get install -y /d/onload-user_9.2.1_amd64.deb /d/onload-dkms_9.2.1_all.deb";
    assert_eq!(vendor.calls(), [apt, "onload_tool reload"]);
    let mixed = install(&["/d/onload-user_9.2.1_amd64.deb", "/d/libsfcgal1_1.4.1_amd64.deb"]);
    assert_eq!(mixed.status.code(), Some(2));
    assert!(text(&mixed.stderr).contains("expected one archive, or packages of Onload of one format"));
    assert_eq!(vendor.calls().len(), 2);
}

#[test]
fn foreign_packages_are_neither_named_nor_taken_along() {
    let vendor = Vendor::new();
    vendor.program(&vendor.path("bin/rpm"), "exit 1\n");
    let owner =
        "case $2 in\n*/onload_tool) echo \"onload-user:amd64, onload-extra: $2\";;\n*) exit 1;;\nesac\n";
    vendor.program(&vendor.path("bin/dpkg-query"), owner);
    let log = vendor.path("log").display().to_string();
    let uninstall = || vendor.onload(&["uninstall", "--yes", "--log", &log]);
    let simulate = |names: &str| {
        let said =
            format!("[ \"$1\" = -s ] || exit 0\nfor name in {names}; do echo \"Remv $name [1.0]\"; done\n");
        vendor.program(&vendor.path("bin/apt-get"), &said);
    };
    simulate("onload-extra onload-user:amd64 libsfcgal1 librte-net-sfc23");
    let refused = uninstall();
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("would also remove libsfcgal1, librte-net-sfc23") && said.contains("hint:"),
        "{said}"
    );
    assert_eq!(vendor.calls(), [""; 0]);
    simulate("onload-extra onload-user:amd64");
    let done = uninstall();
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(vendor.calls()[1], "apt-get remove -y onload-extra onload-user");
}

#[test]
fn demonstrations_are_built_listed_and_run() {
    let vendor = Vendor::new();
    let release = vendor.path(&format!("tree/{RELEASE}")).display().to_string();
    let log = vendor.path("log").display().to_string();
    let built = vendor.onload(&["demos", &release, "--build", "--yes", "--log", &log]);
    assert_eq!(built.status.code(), Some(0), "{}", text(&built.stderr));
    let listed = text(&vendor.onload(&["demos", &release]).stdout);
    assert_eq!(listed.lines().filter(|line| line.contains("not built")).count(), 2, "{listed}");
    let run = vendor.onload(&["demos", &release, "--run", "eflatency", "--", "ping", "enp1s0f1"]);
    assert_eq!(text(&run.stdout), "ping enp1s0f1\n");
    let unknown = vendor.onload(&["demos", &release, "--run", "sh"]);
    assert!(text(&unknown.stderr).contains("cannot run \"sh\": no such demonstration"));
}

#[test]
fn the_status_lists_programs_and_cards() {
    let vendor = Vendor::new();
    let status = text(&vendor.onload(&["status"]).stdout);
    assert!(status.contains("onload_tool") && status.contains("Solarflare cards"), "{status}");
}
