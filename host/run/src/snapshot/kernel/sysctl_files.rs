//! The assignments of sysctl.d in the order in which they are applied at boot, as sysctl.d(5) specifies.
//!
//! Files of all directories are sorted by name. A name in a higher directory replaces the same name in a
//! lower one; an empty file or a link to /dev/null masks it. Across the files the last assignment of a key
//! wins.

use crate::{Root, environment};
use lowlat_host::{Reading, snapshot::Assignment};
use std::collections::{BTreeMap, BTreeSet};

/// Directories of sysctl files, highest precedence first.
const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
const CLASSIC: &str = "/etc/sysctl.conf";
/// Maximum number of files and of keys that one pattern may match; a real host has a few dozen.
const FILES_MAX: usize = 1_000;
const MATCHES_MAX: usize = 4_096;

pub(super) fn read(root: &Root) -> Vec<Assignment> {
    let mut lines = Vec::new();
    for (path, text) in files(root) {
        lines.extend(parse(&path, &text));
    }
    expand(root, lines)
}

/// The lines of /etc/sysctl.conf alone, whether or not they are applied at boot: `sysctl -p` applies them.
pub fn of_classic(root: &Root) -> Vec<Assignment> {
    let text = root.read_lossy(CLASSIC).into_known().unwrap_or_default();
    expand(root, parse(CLASSIC, &text))
}

/// Path and text of every effective file, in the order of application.
fn files(root: &Root) -> Vec<(String, String)> {
    let mut by_name: BTreeMap<String, Option<(String, String)>> = BTreeMap::new();
    for directory in DIRECTORIES {
        for name in root.list(directory).into_known().unwrap_or_default().into_iter().take(FILES_MAX) {
            if !environment::is_config(&name) || by_name.contains_key(&name) {
                continue;
            }
            let path = format!("{directory}/{name}");
            if root.read_link(&path).text() == "/dev/null" {
                by_name.insert(name, None);
                continue;
            }
            match root.read_lossy(&path) {
                // A dangling link replaces nothing.
                Reading::Absent => {}
                reading => {
                    by_name.insert(name, reading.into_known().map(|text| (path, text)));
                }
            }
        }
    }
    let mut files: Vec<(String, String)> = by_name.into_values().flatten().collect();
    files.extend(classic(root, &files));
    files
}

/// /etc/sysctl.conf as a separate file. `sysctl --system`, which configures hosts without systemd, applies it
/// last. systemd-sysctl does not know it. There it counts only through a link in sysctl.d (Debian up to 12,
/// RHEL), and is then already among the files.
fn classic(root: &Root, files: &[(String, String)]) -> Option<(String, String)> {
    if is_set_up_by_systemd(root) {
        return None;
    }
    let place = root.real_path(CLASSIC).into_known()?;
    let is_linked = files.iter().any(|(path, _)| root.real_path(path).text() == place);
    if is_linked {
        None
    } else {
        root.read_lossy(CLASSIC).into_known().map(|text| (CLASSIC.to_owned(), text))
    }
}

/// Booted by systemd, or an image that will be.
fn is_set_up_by_systemd(root: &Root) -> bool {
    root.list("/run/systemd/system").is_known()
        || ["/usr/lib/systemd/system", "/lib/systemd/system"]
            .iter()
            .any(|directory| root.read_bytes(&format!("{directory}/systemd-sysctl.service")).is_known())
}

/// A line of a file: an assignment, or (value `None`) a key that patterns must not match.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    path: String,
    number: u32,
    key: String,
    value: Option<String>,
}

fn parse(path: &str, text: &str) -> Vec<Line> {
    let lines = environment::lines(text).filter_map(|(number, line)| {
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim().to_owned())),
            None => (line, None),
        };
        // Before an assignment the dash means that a failure is not an error; alone it excludes a key from
        // patterns.
        let dashed = key.strip_prefix('-');
        if value.is_none() && dashed.is_none() {
            return None;
        }
        let key = dotted(dashed.unwrap_or(key).trim());
        (!key.is_empty()).then(|| Line { path: path.to_owned(), number, key, value })
    });
    lines.collect()
}

/// The key with dots between its components. If the first separator is a slash, slashes separate the
/// components and dots are literal; they are swapped, as sysctl(8) prints them.
fn dotted(key: &str) -> String {
    let key = key.trim_start_matches('/');
    match key.find(['/', '.']).and_then(|at| key.as_bytes().get(at)) {
        Some(b'/') => swapped(key),
        _ => key.to_owned(),
    }
}

fn swapped(key: &str) -> String {
    let other = |c| match c {
        '/' => '.',
        '.' => '/',
        c => c,
    };
    key.chars().map(other).collect()
}

/// Returns the assignments with each pattern replaced by its keys: those that exist and that no line names
/// explicitly. A pattern without matches is kept as written.
fn expand(root: &Root, lines: Vec<Line>) -> Vec<Assignment> {
    let named: BTreeSet<String> =
        lines.iter().filter(|line| !is_pattern(&line.key)).map(|line| line.key.clone()).collect();
    let mut assignments = Vec::new();
    for Line { path, number, key, value } in lines {
        let Some(value) = value else { continue };
        let matches =
            if is_pattern(&key) { root.glob(&format!("/proc/sys/{}", swapped(&key))) } else { Vec::new() };
        let keys = if matches.is_empty() {
            vec![key]
        } else {
            let keys = matches.iter().take(MATCHES_MAX).filter_map(|path| path.strip_prefix("/proc/sys/"));
            keys.map(swapped).filter(|key| !named.contains(key)).collect()
        };
        assignments.extend(keys.into_iter().map(|key| Assignment {
            path: path.clone(),
            line: number,
            key,
            value: value.clone(),
        }));
    }
    assignments
}

fn is_pattern(key: &str) -> bool {
    key.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    fn applied(tree: &TestTree) -> Vec<String> {
        let shown = |a: Assignment| format!("{}:{} {}={}", a.path, a.line, a.key, a.value);
        read(&tree.root()).into_iter().map(shown).collect()
    }

    #[test]
    fn files_are_sorted_by_name_over_all_directories_and_replace_each_other() {
        let tree = TestTree::new()
            .file("/usr/lib/sysctl.d/50-default.conf", "kernel.sysrq = 16\n")
            .file("/usr/lib/sysctl.d/60-low.conf", "vm.swappiness=60\n")
            .file("/run/sysctl.d/60-low.conf", "vm.swappiness=10\n")
            .file("/usr/lib/sysctl.d/70-masked.conf", "a.b=1\n")
            .link("/etc/sysctl.d/70-masked.conf", "/dev/null")
            .file("/usr/lib/sysctl.d/80-emptied.conf", "a.c=1\n")
            .file("/etc/sysctl.d/80-emptied.conf", "")
            .file("/usr/lib/sysctl.d/90-dangling.conf", "a.d=1\n")
            .link("/etc/sysctl.d/90-dangling.conf", "/nowhere")
            .file("/etc/sysctl.d/10-first.conf", "kernel.sysrq=0\n")
            .file("/etc/sysctl.d/README.sysctl", "x.y=1\n");
        let expected = [
            "/etc/sysctl.d/10-first.conf:1 kernel.sysrq=0",
            "/usr/lib/sysctl.d/50-default.conf:1 kernel.sysrq=16",
            "/run/sysctl.d/60-low.conf:1 vm.swappiness=10",
            "/usr/lib/sysctl.d/90-dangling.conf:1 a.d=1",
        ];
        assert_eq!(applied(&tree), expected);
    }

    #[test]
    fn the_classic_file_is_applied_once_or_last_or_not_at_all() {
        let classic = TestTree::new()
            .file("/etc/sysctl.conf", "vm.swappiness=1\n")
            .file("/etc/sysctl.d/99-zz.conf", "vm.swappiness=2\n");
        assert_eq!(
            applied(&classic),
            ["/etc/sysctl.d/99-zz.conf:1 vm.swappiness=2", "/etc/sysctl.conf:1 vm.swappiness=1"]
        );
        let systemd = classic.dir("/run/systemd/system");
        assert_eq!(applied(&systemd), ["/etc/sysctl.d/99-zz.conf:1 vm.swappiness=2"]);
        let linked = systemd.link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
        assert_eq!(
            applied(&linked),
            ["/etc/sysctl.d/99-sysctl.conf:1 vm.swappiness=1", "/etc/sysctl.d/99-zz.conf:1 vm.swappiness=2"]
        );
        let other = TestTree::of(&[("/etc/sysctl.conf", "a=1")])
            .link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
        assert_eq!(applied(&other), ["/etc/sysctl.d/99-sysctl.conf:1 a=1"]);
    }

    #[test]
    fn keys_comments_and_dashes_are_read_as_documented() {
        let text = "# no\n ; no\n\nkernel.a = 1 2\nkernel/b=2\n-kernel.c=3\nnet/ipv4/conf/enp3s0.200/forwarding=1\n\
            net.ipv4.conf.enp3s0/200.forwarding = 0\njunk\n=5\nkernel.d=\n";
        let lines: Vec<String> = parse("/p", text)
            .into_iter()
            .map(|line| format!("{} {}={}", line.number, line.key, line.value.unwrap()))
            .collect();
        let expected = [
            "4 kernel.a=1 2",
            "5 kernel.b=2",
            "6 kernel.c=3",
            "7 net.ipv4.conf.enp3s0/200.forwarding=1",
            "8 net.ipv4.conf.enp3s0/200.forwarding=0",
            "11 kernel.d=",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn patterns_reach_the_keys_that_no_line_names() {
        let conf = "net.ipv4.conf.*.rp_filter=2\n-net.ipv4.conf.all.rp_filter\nnet.ipv4.conf.hub0.rp_filter=1\n\
            no.such.*=1\n";
        let key = |name: &str| format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        let tree = ["all", "hub0", "eth0.5"]
            .iter()
            .fold(TestTree::of(&[("/etc/sysctl.d/a.conf", conf)]), |tree, name| tree.file(&key(name), "0"));
        let expected = [
            "/etc/sysctl.d/a.conf:1 net.ipv4.conf.eth0/5.rp_filter=2",
            "/etc/sysctl.d/a.conf:3 net.ipv4.conf.hub0.rp_filter=1",
            "/etc/sysctl.d/a.conf:4 no.such.*=1",
        ];
        assert_eq!(applied(&tree), expected);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), line in "[-a-z./*=# ]{0,40}") {
            let tree = TestTree::new().file("/etc/sysctl.d/a.conf", &bytes).file("/etc/sysctl.conf", &line);
            let _ = read(&tree.root());
        }
    }
}
