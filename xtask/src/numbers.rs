//! `cargo xtask numbers`: how large the tree is, and how many of its types share a name.

use crate::{run::output, workspace::Workspace};
use anyhow::{Context as _, bail};
use clap::Args;
use std::{collections::BTreeMap, path::Path, process::Command};

#[derive(Debug, Args)]
pub struct Options {
    /// Exit with an error if a number is above its limit
    #[arg(long)]
    check: bool,
}

/// A number of the tree. The limit is near what it was when it was last set; a commit that raises one says why.
struct Number {
    what: &'static str,
    value: usize,
    limit: usize,
    goal: usize,
}

/// The folders of crates, from the ground up. A crate needs others of its own folder and of those below; those of one
/// floor do not need each other.
const FLOORS: &[&[&str]] = &[
    &["frame"],
    &["host"],
    &["pipeline", "tune"],
    &["jitter"],
    &["cores"],
    &["net"],
    &["results"],
    &["cli"],
];
/// Commits whose subjects are checked.
const COMMITS: &str = "20";
/// Longest subject of a commit, in characters.
const SUBJECT_CHARACTERS_MAX: usize = 72;

pub fn numbers(options: &Options) -> anyhow::Result<()> {
    let workspace = Workspace::read()?;
    let upwards: Vec<String> = workspace
        .arrows()
        .filter(|[from, to]| is_upwards(from.1, to.1))
        .map(|[from, to]| format!("{} needs {}", from.0, to.0))
        .collect();
    let top = workspace.root;
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(&top).args(arguments));
    let files = git(&["ls-files", "-z"])?;
    let (mut product, mut text, mut types) = (0, 0, BTreeMap::<String, usize>::new());
    let mut contents = BTreeMap::new();
    // A link's text is counted where it is.
    let is_file =
        |file: &&str| !file.is_empty() && top.join(file).symlink_metadata().is_ok_and(|of| of.is_file());
    for file in files.split('\0').filter(is_file) {
        let bytes = std::fs::read(top.join(file)).with_context(|| format!("cannot read {file}"))?;
        contents.insert(file, bytes);
    }
    let tests: Vec<String> = contents
        .iter()
        .filter(|(file, _)| is_rust(file))
        .flat_map(|(file, bytes)| test_modules(file, &String::from_utf8_lossy(bytes)))
        .collect();
    let is_test = |file: &str| {
        let below = |test: &String| {
            file.strip_prefix(test.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        tests.iter().any(below)
    };
    for (file, bytes) in &contents {
        if !is_rust(file) {
            // What git shows as text.
            let is_shown = !bytes.iter().take(8_000).any(|byte| *byte == 0);
            text += if is_shown { String::from_utf8_lossy(bytes).lines().count() } else { 0 };
        } else if is_product(file) && !is_test(file) {
            let code = String::from_utf8_lossy(bytes);
            for line in code_lines(&code) {
                product += 1;
                if let Some(name) = declared(line) {
                    *types.entry(name.to_owned()).or_default() += 1;
                }
            }
        }
    }
    let all: usize = types.values().sum();
    let shared: usize = types.values().filter(|count| **count > 1).sum();
    let subjects = git(&["log", "--format=%s", "-n", COMMITS])?;
    let long = subjects.lines().filter(|line| line.chars().count() > SUBJECT_CHARACTERS_MAX).count();
    let numbers = [
        Number {
            what: "lines of product Rust, without comments and blank ones",
            value: product,
            limit: 144_600,
            goal: 125_000,
        },
        Number { what: "lines of other text", value: text, limit: 64_900, goal: 65_000 },
        Number {
            what: "types that share their name, in per mille",
            value: 1_000 * shared / all.max(1),
            limit: 230,
            goal: 250,
        },
        Number { what: "arrows upwards between folders", value: upwards.len(), limit: 0, goal: 0 },
        Number { what: "long subjects of the last 20 commits", value: long, limit: 0, goal: 0 },
    ];
    for Number { what, value, goal, .. } in &numbers {
        println!("{value:>8}  {what} (goal: {goal})");
    }
    let mut most: Vec<_> = types.into_iter().filter(|(_, count)| *count > 1).collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most: Vec<String> = most.iter().take(10).map(|(name, count)| format!("{name} {count}")).collect();
    println!("{all} types; most often: {}", most.join(", "));
    for arrow in &upwards {
        println!("upwards: {arrow}");
    }
    let above: Vec<_> = numbers.iter().filter(|number| number.value > number.limit).collect();
    if let (true, [Number { what, value, limit, .. }, ..]) = (options.check, above.as_slice()) {
        bail!("cannot accept {value} {what}: {limit} are the limit\nhint: make the tree smaller");
    }
    Ok(())
}

/// True if a crate of the first folder must not need one of the second.
fn is_upwards(from: &str, to: &str) -> bool {
    let floor = |folder| FLOORS.iter().position(|floor| floor.contains(&folder));
    match (floor(from), floor(to)) {
        (Some(from_floor), Some(to_floor)) => from != to && from_floor <= to_floor,
        // Tools stand beside the house.
        (None, _) => false,
        (Some(_), None) => true,
    }
}

fn is_rust(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "rs")
}

fn is_product(file: &str) -> bool {
    let others = ["tests", "benches", "examples", "testing", "fuzz", "lab"];
    let part = |part: &str| others.contains(&part.trim_end_matches(".rs"));
    !file.split('/').any(part) && !file.ends_with("tests.rs")
}

/// The modules that a file declares for tests alone: their paths without an extension.
fn test_modules(file: &str, text: &str) -> Vec<String> {
    let (own_folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let own = name.trim_end_matches(".rs");
    let is_root = ["mod", "lib", "main"].contains(&own);
    let folder = if is_root { own_folder.to_owned() } else { format!("{own_folder}/{own}") };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let marked = lines.iter().enumerate().filter(|(_, line)| is_for_tests(line));
    let declared = marked.filter_map(|(place, _)| {
        let mut path = None;
        for line in lines.iter().skip(place + 1) {
            match line.strip_prefix("#[path = \"") {
                Some(rest) => path = rest.strip_suffix(".rs\"]").map(|path| format!("{own_folder}/{path}")),
                None if line.starts_with('#') => {}
                None => {
                    let name = line.strip_suffix(';')?.rsplit_once("mod ")?.1;
                    return Some(path.unwrap_or_else(|| format!("{folder}/{name}")));
                }
            }
        }
        None
    });
    declared.collect()
}

/// True for the attribute of a module that is built for tests alone.
fn is_for_tests(line: &str) -> bool {
    ["#[cfg(test)]", "#[cfg(lowlat_shuttle)]"].contains(&line) || line.starts_with("#[cfg(all(test, ")
}

/// The lines before a file's own tests.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    let own_tests = text.match_indices("#[cfg(").map(|(at, _)| at).find(|at| {
        let mut lines = text[*at..].lines();
        let next = lines
            .next()
            .filter(|line| is_for_tests(line))
            .and_then(|_| lines.find(|line| !line.trim_start().starts_with('#')));
        next.is_some_and(|line| line.trim_start().starts_with("mod ") && line.ends_with('{'))
    });
    text[..own_tests.unwrap_or(text.len())].lines().filter(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with("//")
    })
}

/// The type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut line = line.trim_start();
    if let Some(rest) = line.strip_prefix("pub") {
        line = rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map_or(rest, |(_, rest)| rest)
            .trim_start();
    }
    let (keyword, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "union"].contains(&keyword);
    is_type.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_needs_those_below_it_only() {
        assert!(is_upwards("host", "net") && is_upwards("tune", "pipeline") && is_upwards("cli", "xtask"));
        assert!(!is_upwards("net", "host") && !is_upwards("net", "net") && !is_upwards("xtask", "cli"));
    }

    #[test]
    fn code_and_types_are_counted_without_comments_and_tests() {
        let text = "//! A.\n\npub(crate) struct Place<T> {\n    // B.\n    at: T,\n}\n\n#[cfg(test)]\nmod tests {\n    struct No;\n}\n";
        let lines: Vec<&str> = code_lines(text).collect();
        assert_eq!(lines, ["pub(crate) struct Place<T> {", "    at: T,", "}"]);
        assert_eq!(lines.iter().filter_map(|line| declared(line)).collect::<Vec<_>>(), ["Place"]);
        assert_eq!(
            (declared("    enum Kind;"), declared("impl Kind {"), declared("type A = B;")),
            (Some("Kind"), None, None)
        );
        assert!(is_product("net/model/src/sfnt.rs") && !is_product("net/model/src/tests.rs"));
        assert!(!is_product("net/model/tests/main.rs") && !is_product("host/run/src/testing.rs"));
        let text = "#[cfg(test)]\npub(crate) mod deaths;\n#[cfg(all(test, not(loom)))]\nmod b;\n#[cfg(unix)]\nmod c;\n";
        assert_eq!(test_modules("a/roles/mod.rs", text), ["a/roles/deaths", "a/roles/b"]);
        assert_eq!(test_modules("a/roles.rs", text)[0], "a/roles/deaths");
        let text = "#[cfg(all(test, lowlat_loom))]\n#[path = \"ring_loom.rs\"]\nmod loom_tests;\n";
        assert_eq!(test_modules("a/ring.rs", text), ["a/ring_loom"]);
        let text = "fn a() {}\n#[cfg(all(test, not(lowlat_loom)))]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(code_lines(text).collect::<Vec<_>>(), ["fn a() {}"]);
    }
}
