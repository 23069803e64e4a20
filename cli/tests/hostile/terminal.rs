//! Escape sequences and bidirectional marks in names and contents never reach a terminal.

use crate::common::binary;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// Texts that an attacker puts into names and contents.
const PAYLOADS: &[(&str, &str)] = &[
    ("title", "\u{1b}]0;OWNED\u{7}"),
    ("clear", "\u{1b}[2J\u{1b}[H"),
    ("conceal", "\u{1b}[8m"),
    ("colour", "\u{1b}[31mOWNED"),
    ("answer", "\u{1b}[6n"),
    ("device string", "\u{1b}P$q\"p\u{1b}\\"),
    ("C1", "\u{9b}2J\u{9d}0;OWNED\u{9c}"),
    ("back", "\u{8}\u{8}\u{8}\u{7f}"),
    ("return", "\rOWNED"),
    ("override", "\u{202e}gpj.exe"),
    ("isolate", "\u{2067}OWNED\u{2069}"),
    ("marks", "\u{200f}\u{61c}\u{200b}\u{feff}"),
];

/// Several payloads one after another, which take a run of each command and not several.
fn groups() -> impl Iterator<Item = (String, String)> {
    PAYLOADS.chunks(4).map(|group| {
        let (names, texts): (Vec<_>, Vec<_>) = group.iter().copied().unzip();
        (names.join(", "), texts.concat())
    })
}

/// Commands, with `{}` for the payload, `{file}` for a file that contains it and `{dir}` for a folder with it in its
/// name. `{named}` is a file with it in its name.
const COMMANDS: &[&[&str]] = &[
    // Arguments that the command line refuses.
    &["{}"],
    &["audit", "{}"],
    &["--{}"],
    &["jitter", "--duration", "{}"],
    &["jitter", "--cpus", "{}"],
    &["jitter", "--gate", "{}"],
    &["audit", "--profile", "{}"],
    &["tune", "export", "--format", "{}"],
    &["pipeline", "run", "--pins", "{}"],
    // Arguments that commands refuse.
    &["audit", "--explain", "{}"],
    &["tune", "plan", "--accept-risk", "{}"],
    &["bios", "audit", "--redfish", "{}"],
    &["bios", "audit", "--redfish", "https://{}"],
    // Files that do not exist.
    &["audit", "--root", "/nonexistent{}"],
    &["audit", "--role", "/nonexistent{}"],
    &["journal", "ls", "/nonexistent{}"],
    &["journal", "verify", "/nonexistent{}"],
    &["host", "diff", "/nonexistent{}", "/nonexistent{}"],
    &["host", "capture", "/nonexistent{}/x", "--root", "{host}"],
    &["assess", "--report", "/nonexistent{}/x"],
    &["report", "render", "/nonexistent{}"],
    &["tune", "apply", "--plan", "/nonexistent{}"],
    &["tune", "status", "--root", "/nonexistent{}"],
    &["tune", "plan", "--root", "{host}", "--out", "/nonexistent{}/x"],
    &["bios", "audit", "--file", "/nonexistent{}"],
    &["pipeline", "run", "--pins", "/nonexistent{}"],
    // Files whose content is refused and quoted.
    &["report", "render", "{file}"],
    &["report", "render", "{document}", "--longest"],
    &["report", "compare", "{document}", "{document}"],
    &["audit", "--role", "{file}"],
    &["audit", "--role", "{role}"],
    &["audit", "--root", "{file}"],
    &["tune", "apply", "--plan", "{file}"],
    &["tune", "verify", "--plan", "{file}"],
    &["tune", "apply", "--plan", "{document}"],
    &["bios", "audit", "--file", "{file}"],
    &["bios", "audit", "--file", "{bios}"],
    &["bios", "audit", "--json", "--file", "{bios}"],
    &["bios", "apply", "--dry-run", "--file", "{bios}"],
    &["pipeline", "run", "--pins", "{file}"],
    &["journal", "ls", "{dir}"],
    &["journal", "verify", "{dir}"],
    &["journal", "tail", "{dir}"],
    &["journal", "export", "{dir}"],
    // A host full of them.
    &["host", "show", "--root", "{tree}"],
    &["host", "show", "--json", "--root", "{tree}"],
    &["audit", "--root", "{tree}"],
    &["audit", "--all", "--root", "{tree}"],
    &["audit", "--json", "--root", "{tree}"],
    &["host", "diff", "{host}", "{tree}"],
    &["cpus", "isolated", "--why", "--root", "{tree}"],
    &["tune", "plan", "--root", "{tree}"],
    &["tune", "plan", "--json", "--root", "{tree}"],
    &["tune", "export", "--format", "shell", "--root", "{tree}"],
    &["tune", "export", "--format", "tuned", "--root", "{tree}"],
    &["tune", "export", "--format", "sysctl", "--root", "{tree}"],
    &["tune", "status", "--root", "{tree}"],
    &["host", "capture", "{named}", "--root", "{host}"],
    &["assess", "--no-measure", "--root", "{tree}", "--report", "{named}", "--result", "/dev/null"],
    &["assess", "--no-measure", "--root", "{tree}", "--report", "/dev/null", "--result", "/dev/stdout"],
    &["man"],
];

/// Runs the binary with a terminal as input and outputs, and returns what the terminal got.
fn shown(arguments: &[String], folder: &Path) -> Vec<u8> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&outside).unwrap();
    unlockpt(&outside).unwrap();
    let name = ptsname(&outside, Vec::new()).unwrap();
    let inside = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let stdio = || Stdio::from(inside.try_clone().unwrap());
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(stdio()).stderr(stdio());
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").env("RUST_BACKTRACE", "0");
    let mut child = command.spawn().unwrap();
    // The terminal is closed once nobody holds its inner side: not this process, and not the command.
    drop(command);
    drop(inside);
    let reader = thread::spawn(move || {
        let (mut shown, mut outside) = (Vec::new(), File::from(outside));
        // A terminal without an inner side ends with EIO.
        let _ = outside.read_to_end(&mut shown);
        shown
    });
    child.wait().unwrap();
    reader.join().unwrap()
}

/// The sequence at the start of a text, if lowlat or the progress bar draws with it: styles, clearing a line, moving up.
fn own_sequence(text: &str) -> Option<&str> {
    const OWN: [&str; 14] = [
        "\u{1b}[0m",
        "\u{1b}[1m",
        "\u{1b}[2m",
        "\u{1b}[3m",
        "\u{1b}[4m",
        "\u{1b}[31m",
        "\u{1b}[32m",
        "\u{1b}[33m",
        "\u{1b}[34m",
        "\u{1b}[36m",
        "\u{1b}[2K",
        "\u{1b}[1A",
        "\u{1b}[?25l",
        "\u{1b}[?25h",
    ];
    OWN.into_iter().find(|own| text.starts_with(own))
}

/// Output that should not have reached the terminal.
fn trespassers(shown: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let text = match std::str::from_utf8(shown) {
        Ok(text) => text.to_owned(),
        Err(error) => {
            found.push(format!("bytes that are not UTF-8 ({error})"));
            String::from_utf8_lossy(shown).into_owned()
        }
    };
    let whole = PAYLOADS.iter().filter(|(_, payload)| text.contains(payload));
    found.extend(whole.map(|(what, _)| format!("the payload itself: {what}")));
    // The terminal itself makes \r\n of \n; indicatif ends its drawing with \r.
    let text = text.replace("\r\n", "\n").replace("\r\u{1b}[2K", "\u{1b}[2K");
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        if let Some(own) = own_sequence(rest) {
            rest = &rest[own.len()..];
            continue;
        }
        if lowlat_host::printable::is_unsafe(c) && c != '\n' && c != '\t' {
            found.push(format!("{:?} before {:?}", c, rest.chars().skip(1).take(20).collect::<String>()));
        }
        rest = &rest[c.len_utf8()..];
    }
    found
}

/// Files and folders that carry a payload.
fn bait(payload: &str, folder: &Path) -> BTreeMap<&'static str, PathBuf> {
    let at = |name: &str| folder.join(name);
    // Names of files hold neither slashes nor zeros, and those with more than 255 bytes do not exist.
    let name = payload.replace('/', "");
    fs::write(at("file"), format!("{payload} = {payload}\n{{\"{payload}\":")).unwrap();
    let json = serde_json::to_string(payload).unwrap();
    fs::write(at("role"), format!("housekeeping = {json}\nnics = [{json}]\n")).unwrap();
    let document = format!(
        r#"{{"document": {json}, "schema_version": 99, "lowlat_version": {json}, "plan_id": {json}}}"#
    );
    fs::write(at("document"), document).unwrap();
    let bios = format!(
        r#"{{"@odata.id": {json}, "Id": {json}, "Name": {json}, "AttributeRegistry": {json},
            "Attributes": {{"WorkloadProfile": {json}, "ProcHyperthreading": {json}, {json}: "Enabled"}}}}"#
    );
    fs::write(at("bios"), bios).unwrap();
    let dir = at(&format!("dir{name}"));
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(format!("{name}.journal")), payload).unwrap();
    fs::write(dir.join("00000001.journal"), payload).unwrap();
    fs::write(dir.join("manifest.json"), payload).unwrap();
    let tree = at(&format!("tree{name}"));
    tree_of(&tree, payload, &name);
    let host = crate::common::capture("epyc-7f32-2x8");
    BTreeMap::from([
        ("{file}", at("file")),
        ("{role}", at("role")),
        ("{document}", at("document")),
        ("{bios}", at("bios")),
        ("{dir}", dir),
        ("{tree}", tree),
        ("{named}", at(&format!("named{name}"))),
        ("{host}", host.canonicalize().unwrap()),
    ])
}

/// A host whose files hold the payload: kernel, distribution, processor, NICs, services, threads, values of settings.
fn tree_of(tree: &Path, payload: &str, name: &str) {
    let put = |path: &str, text: String| {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("proc/sys/kernel/osrelease", format!("6.1.0{payload}\n"));
    put("proc/sys/kernel/hostname", format!("{payload}\n"));
    put("proc/version", format!("Linux version 6.1.0{payload}\n"));
    put("proc/cmdline", format!("root=/dev/sda isolcpus={payload} {payload}=1 nohz_full={payload}\n"));
    put("etc/os-release", format!("NAME=\"{payload}\"\nPRETTY_NAME=\"{payload}\"\nID=debian\n"));
    let cpu = |cpu: u32| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: {payload}\nmodel name\t: {payload}\nflags\t\t: fpu {payload}\n\n"
        )
    };
    put("proc/cpuinfo", (0..4).map(cpu).collect());
    for list in ["present", "possible", "online"] {
        put(&format!("sys/devices/system/cpu/{list}"), "0-3\n".into());
    }
    for cpu in 0..4 {
        let of = |rest: &str| format!("sys/devices/system/cpu/cpu{cpu}/{rest}");
        put(&of("topology/core_id"), format!("{cpu}\n"));
        put(&of("topology/physical_package_id"), "0\n".into());
        put(&of("topology/thread_siblings_list"), format!("{cpu}\n"));
        put(&of("cpufreq/scaling_governor"), format!("{payload}\n"));
        put(&of("cpufreq/scaling_driver"), format!("{payload}\n"));
        put(&of("cpuidle/state0/name"), format!("{payload}\n"));
    }
    for knob in [
        "kernel/nmi_watchdog",
        "kernel/numa_balancing",
        "vm/swappiness",
        "vm/stat_interval",
        "net/core/busy_poll",
    ] {
        put(&format!("proc/sys/{knob}"), format!("1{payload}\n"));
    }
    put("sys/kernel/mm/transparent_hugepage/enabled", format!("[{payload}] never\n"));
    put("etc/sysctl.d/99-theirs.conf", format!("vm.swappiness = {payload}\n{payload} = 1\n"));
    put(&format!("etc/sysctl.d/{name}.conf"), "vm.swappiness = 60\n".into());
    put("etc/tuned/active_profile", format!("{payload}\n"));
    put(&format!("sys/class/net/eth{name}/operstate"), "up\n".into());
    put(&format!("sys/class/net/eth{name}/type"), "1\n".into());
    put(&format!("sys/class/net/eth{name}/device/vendor"), payload.into());
    put(
        "proc/interrupts",
        format!("           CPU0       CPU1\n  24:  1  2  {payload} {payload}-edge {payload}\n"),
    );
    put("proc/77/comm", format!("{payload}\n"));
    put("proc/77/stat", format!("77 ({payload}) S 2 0 0 0 -1 2129984\n"));
    put("sys/class/dmi/id/product_name", format!("{payload}\n"));
    put("sys/class/dmi/id/sys_vendor", format!("{payload}\n"));
}

#[test]
fn nothing_acts_on_the_terminal() {
    let mut failures = Vec::new();
    for (what, payload) in groups() {
        let folder = tempfile::tempdir().unwrap();
        let bait = bait(&payload, folder.path());
        for command in COMMANDS {
            let filled = command.iter().map(|argument| match bait.get(argument) {
                Some(path) => path.display().to_string(),
                None => argument.replace("{}", &payload),
            });
            let shown = shown(&filled.collect::<Vec<_>>(), folder.path());
            assert!(!shown.is_empty(), "{command:?} prints something");
            let found = trespassers(&shown);
            if let Some(first) = found.first() {
                failures.push(format!(
                    "{what}: lowlat {}: {} times, first {first}",
                    command.join(" "),
                    found.len()
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} attacks got through:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn nothing_acts_from_files_that_lowlat_writes() {
    let mut failures = Vec::new();
    for (what, payload) in groups() {
        let folder = tempfile::tempdir().unwrap();
        let bait = bait(&payload, folder.path());
        let tree = bait["{tree}"].to_str().unwrap();
        let commands: [&[&str]; 6] = [
            &["assess", "--no-measure", "--root", tree],
            &["tune", "plan", "--out", "plan.json", "--root", tree],
            &["tune", "export", "--format", "shell", "--out", "shell", "--root", tree],
            &["tune", "export", "--format", "tuned", "--out", "tuned", "--root", tree],
            &["tune", "export", "--format", "systemd", "--out", "systemd", "--root", tree],
            &["man", "--dir", "."],
        ];
        let before: Vec<PathBuf> = files(folder.path());
        for command in commands {
            let out = Command::new(binary()).args(command).current_dir(folder.path()).output().unwrap();
            assert!(out.status.code().is_some_and(|code| code < 2), "{command:?}: {out:?}");
        }
        let written: Vec<PathBuf> =
            files(folder.path()).into_iter().filter(|file| !before.contains(file)).collect();
        assert!(written.len() > 10, "{written:?}");
        for file in written {
            if let Some(first) = trespassers(&fs::read(&file).unwrap()).first() {
                failures.push(format!("{what}: {}: {first}", file.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    assert!(failures.is_empty(), "{} attacks got through:\n{}", failures.len(), failures.join("\n"));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
