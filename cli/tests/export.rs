//! Files of `lowlat tune export`: unchanged, accepted by the tools that they are for, and applied to a tree.

mod cut_short;
mod on_a_tree;
mod run_sysjit;
mod settled;
mod tree;

use crate::common::{self, programs::write_program};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Profile, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::{
    Plan,
    export::{ExportedFile, FORMATS, Format},
};
use lowlat_settings::{Context, Risk};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Mutex,
};

const SHELLS: [&str; 2] = ["dash", "bash"];

/// A host with a role.
struct HostWithRole {
    host: HostSnapshot,
    role: Role,
    allocation: Allocation,
}

impl HostWithRole {
    fn of(root: &Path, profile: Profile, takes_all: bool) -> Self {
        Self::with(read(root), profile, takes_all)
    }

    fn with(host: HostSnapshot, profile: Profile, takes_all: bool) -> Self {
        let risky = CATALOGUE.settings().filter(|setting| takes_all && setting.risk != Risk::None);
        let accepted_risks = risky.map(|setting| setting.id.to_owned()).collect();
        let role = Role { profile, accepted_risks, ..Role::default() };
        let allocation = Allocation::choose(&host, &role);
        Self { host, role, allocation }
    }

    fn context(&self) -> Context<'_> {
        let Self { host, role, allocation } = self;
        Context { host, role, allocation, profile: role.profile, catalogue: CATALOGUE }
    }

    fn files(&self, format: &str) -> Vec<ExportedFile> {
        Self::files_of(&self.context(), format)
    }

    fn files_of(context: &Context<'_>, format: &str) -> Vec<ExportedFile> {
        Format::find(format).expect("a format").files(context, "0.0.0")
    }

    fn plan(&self) -> Plan {
        Plan::of(&self.context(), "0.0.0")
    }
}

/// Each capture is read once; it takes longer than all the rest.
fn read(root: &Path) -> HostSnapshot {
    static READ: Mutex<BTreeMap<PathBuf, HostSnapshot>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().expect("no other test panics while it reads");
    let fresh = || snapshot::read(&Root::open(root).unwrap_or_else(|error| panic!("{error}")), CATALOGUE);
    read.entry(root.to_owned()).or_insert_with(fresh).clone()
}

fn stock() -> PathBuf {
    common::capture("epyc-7f32-stock")
}

fn find<'a>(files: &'a [ExportedFile], ending: &str) -> &'a str {
    let found = files.iter().find(|file| file.path.ends_with(ending));
    found.map_or_else(|| panic!("no file {ending}"), |file| file.text.as_str())
}

/// Writes files below a directory as the command does.
fn write(files: &[ExportedFile], directory: &Path) {
    for file in files {
        let path = directory.join(&file.path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        if file.is_program {
            write_program(&path, &file.text);
        } else {
            fs::write(&path, &file.text).expect("a file");
        }
    }
}

/// Runs a program that may not be installed; prints a message if it is missing.
fn run_if_there(program: &str, arguments: &[&str], directory: &Path) -> Option<Output> {
    match Command::new(program).args(arguments).current_dir(directory).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}

#[track_caller]
fn assert_success(output: &Output) {
    let said = common::text(&output.stdout) + &common::text(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// Constant parts of exported files, by name.
fn constant_parts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tune/plan/src/export/sh");
    let mut parts: Vec<(String, String)> = fs::read_dir(folder)
        .expect("the parts")
        .map(|entry| entry.expect("a part").path())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("text"))
        })
        .collect();
    parts.sort();
    parts
}

/// Golden files contain the names of constant parts, and a sample of settings.
#[test]
fn exports_read_as_they_did() {
    let parts = constant_parts();
    for profile in Profile::ALL {
        let desk = HostWithRole::of(&stock(), profile, false);
        let context = Context { catalogue: common::sample(), ..desk.context() };
        for format in FORMATS {
            let mut text = String::new();
            for file in HostWithRole::files_of(&context, format.name) {
                let named = parts
                    .iter()
                    .fold(file.text, |text, (name, part)| text.replace(part, &format!("[sh/{name}]\n")));
                text.extend(["==> ", file.path.as_str(), " <==\n", &named, "\n"]);
            }
            insta::assert_snapshot!(format!("{}@{profile}", format.name), text);
        }
    }
}

#[test]
fn no_shell_finds_fault_with_a_script_of_any_host() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, path) in common::fixtures() {
        for profile in Profile::ALL {
            for takes_all in [false, true] {
                let desk = HostWithRole::of(&path, profile, takes_all);
                for format in FORMATS {
                    let below =
                        directory.path().join(format!("{name}/{profile}/{takes_all}/{}", format.name));
                    write(&desk.files(format.name), &below);
                }
            }
        }
    }
    let is_script =
        |name: &str| Path::new(name).extension().is_some_and(|ending| ending == "sh" || ending == "cfg");
    let scripts: Vec<String> = below(directory.path()).into_iter().filter(|name| is_script(name)).collect();
    assert!(scripts.len() > 30, "{}", scripts.len());
    for script in &scripts {
        for shell in SHELLS {
            if let Some(output) = run_if_there(shell, &["-n", script], directory.path()) {
                assert_success(&output);
            }
        }
    }
    let arguments: Vec<&str> = ["-s", "sh"].into_iter().chain(scripts.iter().map(String::as_str)).collect();
    if let Some(output) = run_if_there("shellcheck", &arguments, directory.path()) {
        assert_success(&output);
    }
}

fn below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(below(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn systemd_accepts_the_unit() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = HostWithRole::of(&stock(), Profile::Guide57037, false).files("systemd");
    write(&files, directory.path());
    // The path of the program is that of the target host.
    let program = directory.path().join("usr/local/bin/oneshot_script.sh").display().to_string();
    let unit = find(&files, "one-time.service").replace("/usr/local/bin/oneshot_script.sh", &program);
    fs::write(directory.path().join("one-time.service"), unit).expect("the unit");
    if let Some(output) =
        run_if_there("systemd-analyze", &["verify", "--man=no", "./one-time.service"], directory.path())
    {
        assert_success(&output);
        let said = common::text(&output.stderr);
        assert!(!said.contains("one-time.service"), "{said}");
    }
}

/// The helper prints its numbers without lowlat; with it, lowlat's.
#[test]
fn the_helper_of_tuned_knows_the_numbers() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = HostWithRole::of(&stock(), Profile::Guide57037, true).files("tuned");
    write(&files, directory.path());
    let helper = directory.path().join("HPELowLatency/script.sh");
    let ask = |which: &str, path: &str| {
        let output = Command::new("dash").arg(&helper).arg(which).env("PATH", path).output().expect("dash");
        (output.status.code(), common::text(&output.stdout))
    };
    let plain = "/usr/bin:/bin";
    assert_eq!(ask("housekeeping", plain), (Some(0), "0,8".into()));
    assert_eq!(ask("isolated", plain), (Some(0), "1-7,9-15".into()));
    assert_eq!(ask("rcub", plain), (Some(0), "0:f:4:101:rcub.*".into()));
    assert_eq!(
        ask("ksoftirqd", plain),
        (Some(0), "0:f:2:*:ksoftirqd.*".into()),
        "no CPUs: the kernel refuses"
    );
    assert_eq!(ask("nonsense", plain), (Some(2), String::new()));
    let stand_in = "#!/bin/sh\nif [ \"$1 $2\" = 'cpus isolated' ]; then echo 2-7,10-15; else exit 2; fi\n";
    let lowlat = ExportedFile { path: "bin/lowlat".into(), is_program: true, text: stand_in.into() };
    write(&[lowlat], directory.path());
    let path = format!("{}:{plain}", directory.path().join("bin").display());
    assert_eq!(ask("isolated", &path), (Some(0), "2-7,10-15".into()));
    assert_eq!(ask("housekeeping", &path), (Some(0), "0,8".into()), "a lowlat that fails is no answer");
}

const PARSE_PROFILE: &str = "
import configparser, sys
profile = configparser.ConfigParser(delimiters='=', inline_comment_prefixes='#', interpolation=None, strict=True)
profile.optionxform = str
profile.read_file(open(sys.argv[1]))
assert profile['main']['include'] == 'cpu-partitioning'
print(profile['bootloader']['cmdline'])
";

#[test]
fn the_profile_of_tuned_is_what_its_parser_takes() {
    let directory = tempfile::tempdir().expect("a directory");
    for (profile, name) in [(Profile::Guide57037, "HPELowLatency"), (Profile::Trading, "lowlat-trading")] {
        let files = HostWithRole::of(&stock(), profile, true).files("tuned");
        write(&files, directory.path());
        let conf = format!("{name}/tuned.conf");
        let arguments = ["-c", PARSE_PROFILE, &conf];
        let Some(output) = run_if_there("python3", &arguments, directory.path()) else { return };
        assert_success(&output);
        let line = common::text(&output.stdout)
            .replace("${isolated_cores}", "1-7,9-15")
            .replace("${housekeeping_cpus}", "0,8")
            .replace("${not_isolated_cpumask}", "00000101");
        assert!(find(&files, "expected-cmdline").trim_end().ends_with(line.trim_end()), "{line}");
    }
}

const LOAD_PROFILE: &str = include_str!("export/load_profile.py");

/// TuneD's own loader and its boot loader plugin, from an unpacked package that LOWLAT_TUNED names.
#[test]
fn tuned_loads_the_profile_and_makes_the_expected_line() {
    let Some(package) = common::tuned_package("tuned_loads_the_profile_and_makes_the_expected_line") else {
        return;
    };
    for (profile, name) in [(Profile::Guide57037, "HPELowLatency"), (Profile::Trading, "lowlat-trading")] {
        let directory = tempfile::tempdir().expect("a directory");
        let here = directory.path().display().to_string();
        let mut files = HostWithRole::of(&stock(), profile, true).files("tuned");
        for file in &mut files {
            file.text = file.text.replace("/etc/tuned/", &format!("{here}/"));
        }
        write(&files, directory.path());
        let arguments = ["-c", LOAD_PROFILE, &package.to_string_lossy(), &here, name];
        let output = run_if_there("python3", &arguments, directory.path()).expect("python3");
        assert_success(&output);
        let said = common::text(&output.stdout);
        let line = said.lines().find_map(|line| line.strip_prefix("cmdline ")).expect("a line");
        assert!(find(&files, "expected-cmdline").trim_end().ends_with(line), "{line}");
        assert!(
            said.contains("isolated_cores 1-7,9-15\n") && said.contains("banned_cpus 1-7,9-15\n"),
            "{said}"
        );
    }
}

#[test]
fn the_command_writes_prints_and_refuses() {
    let root = stock().display().to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("tune.sh").display().to_string();
    let export = |rest: &[&str]| {
        let arguments: Vec<&str> = ["tune", "export", "--root", &root].iter().chain(rest).copied().collect();
        common::lowlat(&arguments)
    };
    let printed = export(&["--format", "shell"]);
    assert_success(&printed);
    assert_success(&export(&["--format", "shell", "--out", &file]));
    assert_eq!(fs::read(&file).expect("the script"), printed.stdout);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).expect("the script").permissions());
    assert_eq!(mode & 0o777, 0o755);
    // The same again is no change; something else is not overwritten unasked.
    assert_success(&export(&["--format", "shell", "--out", &file]));
    let other = export(&["--format", "shell", "--profile", "guide-57037", "--out", &file]);
    assert_eq!(other.status.code(), Some(2));
    assert!(common::text(&other.stderr).contains("--force replaces it"));
    assert_success(&export(&["--format", "shell", "--profile", "guide-57037", "--out", &file, "--force"]));

    let below = directory.path().join("profile").display().to_string();
    assert_success(&export(&["--format", "tuned", "--out", &below]));
    assert!(Path::new(&below).join("lowlat-trading/tuned.conf").exists());
    // A name of a file does not become a directory, whether the file exists or not.
    for name in ["tune.sh", "desk7.yml"] {
        let path = directory.path().join(name);
        let before = fs::read(&path).ok();
        let refused = export(&["--format", "tuned", "--out", &path.display().to_string()]);
        let message = common::text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{message}");
        assert!(
            message.contains(&format!("hint: name a directory, such as --out {}/", path.display())),
            "{message}"
        );
        assert_eq!((fs::read(&path).ok(), path.is_dir()), (before, false));
    }
    assert_success(&export(&[
        "--format",
        "tuned",
        "--out",
        &directory.path().join("desk7.yml/").display().to_string(),
    ]));
    assert!(directory.path().join("desk7.yml/lowlat-trading/tuned.conf").exists());
    let nowhere = directory.path().join("missing/tune.sh");
    let refused = export(&["--format", "shell", "--out", &nowhere.display().to_string()]);
    assert_eq!(refused.status.code(), Some(2), "as every other --out: {}", common::text(&refused.stderr));
    let together = common::text(&export(&["--format", "tuned"]).stdout);
    assert!(together.starts_with("==> lowlat-trading/tuned.conf <==\n"));

    let unknown = export(&["--format", "puppet"]);
    assert_eq!(unknown.status.code(), Some(2));
    let mistyped = export(&["--format", "tuned", "--accept-risk", "boot.selinus"]);
    assert_eq!(mistyped.status.code(), Some(2));
    assert!(common::text(&mistyped.stderr).contains("did you mean \"boot.selinux\"?"));
    let blocked = export(&["--format", "tuned", "--out", &format!("{file}/below")]);
    assert_eq!(blocked.status.code(), Some(2), "a file in the way: {}", common::text(&blocked.stderr));
}

#[test]
fn isolation_by_cpuset_is_not_exported() {
    let folder = tempfile::tempdir().unwrap();
    let role = folder.path().join("role.toml");
    fs::write(&role, "isolate-by = \"cpuset\"\n").unwrap();
    for format in FORMATS {
        let output =
            common::lowlat(&["tune", "export", "--format", format.name, "--role", role.to_str().unwrap()]);
        let said = common::text(&output.stderr);
        assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{said}");
        assert!(said.contains("only lowlat forms the partition\nhint: remove isolate-by"), "{said}");
    }
}
