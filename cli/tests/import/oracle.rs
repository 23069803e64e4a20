//! TuneD's own Python modules as the oracle of how profiles are merged and expanded.

use crate::common::tuned_package;
use lowlat_host::{HostSnapshot, Reading};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::import::tuned::{MergedProfile, Tree};
use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A host, and the folder with the profiles that are loaded on it.
struct Files<'a> {
    host: &'a Root,
    profiles: Root,
}

impl Tree for Files<'_> {
    fn read(&self, path: &str) -> Reading<String> {
        if path.contains("/tuned/") { self.profiles.read(path) } else { self.host.read(path) }
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        self.host.glob(pattern)
    }
}

/// Asks TuneD for each root and profile.
fn ask(package: &Path, host: &Path, is_virtual: bool, cases: &[(PathBuf, String)]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/merged.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(package).arg(host).arg(is_virtual.to_string());
    let mut python = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = String::new();
    for (root, name) in cases {
        writeln!(input, "{}\t{name}", root.display()).unwrap();
    }
    let mut stdin = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let answers: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    assert_eq!(answers.len(), cases.len());
    answers
}

/// Differences, and the numbers of values that are known and that are not.
#[derive(Default)]
struct Comparison {
    differences: Vec<String>,
    known: usize,
    unknown: usize,
    rejected: usize,
}

impl Comparison {
    fn one(&mut self, what: &str, ours: Result<&str, &str>, theirs: &str) {
        // Python's sets have no order.
        let sorted = |text: &str| {
            let mut parts: Vec<String> = text.split([',', ' ']).map(str::to_owned).collect();
            parts.sort();
            parts
        };
        match ours {
            Err(_) => self.unknown += 1,
            Ok(ours) if ours == theirs || sorted(ours) == sorted(theirs) => self.known += 1,
            Ok(ours) => self.differences.push(format!("{what}: {ours:?}, TuneD {theirs:?}")),
        }
    }

    fn profile(&mut self, name: &str, files: &Files<'_>, host: &HostSnapshot, theirs: &Value) {
        let loaded = MergedProfile::load(&[name], files, host);
        let rejection = match &loaded {
            Err(why) => Some(why.clone()),
            Ok(ours) => ours.refused.clone().or_else(|| ours.missing.first().map(|one| format!("{one:?}"))),
        };
        if let Some(error) = theirs["error"].as_str() {
            self.rejected += 1;
            // A value that is not known leaves open whether it can be computed.
            let is_open = loaded.is_ok_and(|ours| {
                let mut entries = ours.units.iter().flat_map(|unit| &unit.entries);
                entries.any(|entry| ours.expand(&entry.value).is_err())
                    || ours.units.iter().any(|unit| ours.expand(&unit.devices).is_err())
                    || !ours.unread.is_empty()
            });
            if rejection.is_none() && !is_open {
                self.differences.push(format!("{name}: accepted; TuneD: {error}"));
            }
            return;
        }
        let ours = match (loaded, rejection) {
            (Ok(ours), None) => ours,
            (_, why) => return self.differences.push(format!("{name}: rejected: {why:?}")),
        };
        if ours.unread.iter().any(|part| part.place == "[main] include") {
            self.unknown += 1;
            return;
        }
        for (key, value) in ours.variables() {
            let theirs = theirs["variables"][format!("TUNED_{key}")].as_str().unwrap_or("(none)");
            self.one(&format!("{name} variable {key}"), value, theirs);
        }
        let units: Vec<&Value> =
            theirs["units"].as_array().unwrap().iter().filter(|unit| unit["name"] != "variables").collect();
        if ours.units.len() != units.len() {
            self.differences.push(format!("{name}: {} sections, TuneD {}", ours.units.len(), units.len()));
        }
        for (ours_of, theirs_of) in ours.units.iter().zip(units) {
            let what = format!("{name} [{}]", ours_of.name);
            self.one(&what, Ok(&ours_of.name), theirs_of["name"].as_str().unwrap());
            self.one(&format!("{what} type"), Ok(&ours_of.plugin), theirs_of["plugin"].as_str().unwrap());
            let enabled = theirs_of["enabled"].to_string();
            self.one(&format!("{what} enabled"), Ok(&ours_of.is_enabled.to_string()), &enabled);
            let devices = ours.expand(&ours_of.devices);
            self.one(
                &format!("{what} devices"),
                devices.as_deref().map_err(String::as_str),
                theirs_of["devices"].as_str().unwrap(),
            );
            if ours_of.is_enabled && ours_of.uname.is_none() {
                let applies = ours.applies(ours_of).map(|applies| applies.to_string());
                let matches = theirs_of["matches"].to_string();
                self.one(&format!("{what} cpuinfo"), applies.as_deref().map_err(String::as_str), &matches);
            }
            let options = theirs_of["options"].as_object().unwrap();
            let entries: Vec<_> = ours_of.entries.iter().filter(|entry| entry.key != "script").collect();
            if entries.len() != options.len() {
                let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
                self.differences
                    .push(format!("{what}: {keys:?}, TuneD {:?}", options.keys().collect::<Vec<_>>()));
            }
            for entry in entries {
                let value = ours.expand(&entry.value);
                let theirs = options.get(&entry.key).and_then(Value::as_str).unwrap_or("(none)");
                self.one(&format!("{what} {}", entry.key), value.as_deref().map_err(String::as_str), theirs);
            }
        }
    }
}

/// A fixture as a tree that both can read.
fn unpacked(name: &str) -> (tempfile::TempDir, Root, HostSnapshot) {
    let archive = crate::common::capture(name);
    let dir = tempfile::tempdir().unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(fs::File::open(archive).unwrap()))
        .unpack(dir.path())
        .unwrap();
    let root = Root::open(dir.path()).unwrap();
    let host = snapshot::read(&root, lowlat_catalogue::CATALOGUE);
    (dir, root, host)
}

fn compare(package: &Path, fixture: &str, cases: &[(PathBuf, String)]) -> Comparison {
    let (dir, root, host) = unpacked(fixture);
    let is_virtual = host.virtualization.is_virtual == Reading::Known(true);
    let mut comparison = Comparison::default();
    for ((profiles, name), theirs) in cases.iter().zip(ask(package, dir.path(), is_virtual, cases)) {
        fs::create_dir_all(profiles.join("proc")).unwrap();
        let files = Files { host: &root, profiles: Root::open(profiles).unwrap() };
        comparison.profile(name, &files, &host, &theirs);
    }
    comparison
}

#[test]
fn stock_profiles_of_tuned_are_merged_as_tuned_merges_them() {
    let Some(package) = tuned_package("stock_profiles_of_tuned_are_merged_as_tuned_merges_them") else {
        return;
    };
    let copy = tempfile::tempdir().unwrap();
    let copied =
        Command::new("cp").arg("-r").arg(package.join("usr/lib/tuned")).arg(copy.path()).status().unwrap();
    assert!(copied.success());
    for folder in ["usr/lib", "etc/tuned"] {
        fs::create_dir_all(copy.path().join(folder)).unwrap();
    }
    fs::rename(copy.path().join("tuned"), copy.path().join("usr/lib/tuned")).unwrap();
    for entry in fs::read_dir(package.join("etc/tuned")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().ends_with("-variables.conf") {
            fs::copy(entry.path(), copy.path().join("etc/tuned").join(entry.file_name())).unwrap();
        }
    }
    let mut folders: Vec<PathBuf> = ["usr/lib/tuned", "usr/lib/tuned/profiles"]
        .iter()
        .flat_map(|folder| fs::read_dir(copy.path().join(folder)).into_iter().flatten())
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.join("tuned.conf").is_file())
        .collect();
    folders.sort();
    let name = |folder: &PathBuf| folder.file_name().unwrap().to_string_lossy().into_owned();
    let cases: Vec<(PathBuf, String)> =
        folders.iter().map(|folder| (copy.path().to_owned(), name(folder))).collect();
    assert!(cases.len() >= 30, "{cases:?}");
    for fixture in ["epyc-7f32-stock", "neoverse-n1-8"] {
        let comparison = compare(&package, fixture, &cases);
        assert!(comparison.differences.is_empty(), "{fixture}: {:#?}", comparison.differences);
        assert!(
            comparison.known > 20 * comparison.unknown,
            "{} known, {} not",
            comparison.known,
            comparison.unknown
        );
    }
    // Each is judged, whatever its parts are.
    let host = crate::common::capture("epyc-7f32-stock");
    for folder in folders {
        let file = folder.join("tuned.conf");
        let output = crate::common::lowlat(&[
            "import",
            "tuned",
            file.to_str().unwrap(),
            "--root",
            host.to_str().unwrap(),
        ]);
        let said = crate::common::text(&output.stdout) + &crate::common::text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{}: {said}", file.display());
        assert!(!said.contains("Cannot be parsed"), "{}: {said}", file.display());
    }
}

/// A generator of numbers that gives the same ones for a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A value with variables, functions and escapes.
    fn value(&mut self, depth: usize) -> String {
        if depth == 0 || self.is(30) {
            let plain = [
                "1",
                "2-3,5",
                "0,4-6",
                "^1,0-3",
                "performance|powersave",
                "10%",
                ">50",
                "\"4 4\"",
                "x y",
                "1,x",
                "",
                " 7 ",
            ];
            return self.one(&plain).to_owned();
        }
        let inner = |numbers: &mut Self| numbers.value(depth - 1).replace(':', "\\:");
        match self.below(16) {
            0..4 => format!("${{{}}}", self.one(&["a", "b", "c", "none"])),
            4 => format!("\\${{{}}}", self.one(&["a", "b"])),
            5 => format!("\\\\${{{}}}", self.one(&["a", "b"])),
            6 => format!("{}${{{}}}", inner(self), self.one(&["a", "c"])),
            7 => format!("{}}}{}", inner(self), inner(self)),
            8 => format!("\\${{f:strip:{}}}", inner(self)),
            9 => format!("${{f:strip:{}:{}}}{}", inner(self), inner(self), inner(self)),
            10 => format!(
                "${{f:regex_search_ternary:{}:{}:{}:{}}}",
                inner(self),
                self.one(&["^1", "[0-9],", "x|y", "\\\\d-\\\\d", "(", "\\bx\\b"]),
                inner(self),
                inner(self)
            ),
            11 => format!("${{f:virt_check:{}:{}}}", inner(self), inner(self)),
            12 => format!("${{f:calc_isolated_cores{}}}", self.one(&["", ":1", ":2", ":x"])),
            13 => format!(
                "${{f:cpuinfo_check:{}:{}:{}}}",
                self.one(&["AMD", "ARM", "^processor"]),
                inner(self),
                inner(self)
            ),
            _ => {
                let name = self.one(&[
                    "cpulist_unpack",
                    "cpulist_pack",
                    "cpulist_invert",
                    "cpulist_online",
                    "cpulist_present",
                    "cpulist2hex",
                    "cpulist2hex_invert",
                    "assertion_non_equal:never",
                    "kb2s",
                    "s2kb",
                    "nothing",
                    "exec",
                ]);
                format!("${{f:{name}:{}}}", inner(self))
            }
        }
    }

    fn profile(&mut self) -> String {
        let mut text = String::from("# generated\n[main]\nsummary=x\n");
        if self.is(50) {
            let first = self.one(&["p0", "p1", "p2", "-none", "p3"]);
            let rest = self.one(&["", ",p1", " ; p2", ",\n  p0", ",${f:virt_check:p0:p1}", ",p9"]);
            let rest = if rest == ",p9" && self.is(80) { "" } else { rest };
            writeln!(text, "include{}{first}{rest}", self.one(&["=", " = "])).unwrap();
        }
        let sections = ["variables", "sysctl", "vm", "cpu", "sysfs", "bootloader", "sysctl.more", "disk-sas"];
        for _ in 0..=self.below(5) {
            let section = self.one(&sections);
            writeln!(text, "[{section}]{}", self.one(&["", " ", " # x", "x"])).unwrap();
            if section != "variables" {
                let marks = [
                    "replace=1",
                    "replace = true",
                    "drop=a",
                    "drop=b , c",
                    "drop=/sys/x,a;b",
                    "enabled=false",
                    "enabled=1",
                    "type=sysctl",
                    "devices=sd* !sda",
                    "devices=${a}",
                    "cpuinfo_regex=AMD",
                    "priority=3",
                ];
                for _ in 0..self.below(3) {
                    writeln!(text, "{}", self.one(&marks)).unwrap();
                }
            } else if self.is(40) {
                writeln!(
                    text,
                    "include={}",
                    self.one(&["/etc/tuned/one.conf", "/etc/tuned/two.conf", "/etc/tuned/no.conf"])
                )
                .unwrap();
            }
            for _ in 0..self.below(5) {
                let key = self.one(&["a", "b", "c", "a.b", "/sys/x"]);
                let value = self.value(3);
                let comment = self.one(&[
                    "",
                    "",
                    " # comment",
                    "#no comment",
                    " ; no comment",
                    "\n  more\n\n   # x\n\tstill",
                    "\n",
                ]);
                writeln!(text, "{key}{}{value}{comment}", self.one(&["=", " = "])).unwrap();
            }
        }
        text
    }
}

#[test]
fn generated_profiles_are_merged_as_tuned_merges_them() {
    let Some(package) = tuned_package("generated_profiles_are_merged_as_tuned_merges_them") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(29);
    let mut cases = Vec::new();
    for number in 0..250 {
        let root = dir.path().join(number.to_string());
        for file in ["one", "two"] {
            let mut text = String::new();
            for _ in 0..numbers.below(4) {
                writeln!(text, "{} = {}", numbers.one(&["a", "b", "c", "#a"]), numbers.value(2)).unwrap();
            }
            fs::create_dir_all(root.join("etc/tuned")).unwrap();
            fs::write(root.join(format!("etc/tuned/{file}.conf")), text + "lonely\n").unwrap();
        }
        for name in ["p0", "p1", "p2", "p3"] {
            for folder in ["usr/lib/tuned", "etc/tuned"] {
                if folder == "usr/lib/tuned" || numbers.is(20) {
                    fs::create_dir_all(root.join(folder).join(name)).unwrap();
                    fs::write(root.join(folder).join(name).join("tuned.conf"), numbers.profile()).unwrap();
                }
            }
            cases.push((root.clone(), name.to_owned()));
        }
    }
    let comparison = compare(&package, "epyc-7f32-stock", &cases);
    assert!(
        comparison.differences.is_empty(),
        "{} differences: {:#?}",
        comparison.differences.len(),
        &comparison.differences[..comparison.differences.len().min(20)]
    );
    let Comparison { known, unknown, rejected, .. } = comparison;
    assert!(
        known > 5 * unknown && rejected < cases.len() / 2,
        "{known} known, {unknown} not, {rejected} rejected"
    );
}
