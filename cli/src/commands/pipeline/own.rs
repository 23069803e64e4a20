//! Strategies of the user that a run starts and supervises, from a TOML file.

use crate::trusted::TrustedKind;
use anyhow::{Context, bail, ensure};
use lowlat_node::{
    ORDERS_PREFIX,
    address::{NAME_BYTES_MAX, is_name},
};
use lowlat_pipeline::ProcessRole;
use lowlat_trade::{
    master::Program,
    run::plan::{MASTER, OWN},
};
use rustix::process::geteuid;
use serde::Deserialize;
use std::{collections::BTreeMap, io::Read as _, path::Path};

/// Format of --config, for the help.
pub const CONFIG_HELP: &str = "\
Strategies of your own (--config) are tables of a TOML file:
  [[strategy]]
  name = \"maker\"                                # the node's name
  command = [\"python3\", \"maker.py\", \"{master}\"] # {master}: the master's socket
  environment = { SYMBOL = \"AAPL\" }             # optional
  restarts_max = 10                             # optional, in a row
Each finds the socket in LOWLAT_MASTER and its name in LOWLAT_NAME too. They share the
CPUs of --pins strategies=, in turn. One that fails is restarted after a second, and after
twice as long each time, up to a minute; the others are not affected. Once it has run for
a minute, counting starts again. One that is given up is named by lowlat pipeline ps, and
the exit code is 1.";

/// Largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Restarts in a row, unless the file says otherwise.
const RESTARTS_MAX: u32 = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFile {
    strategy: Vec<OwnStrategy>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnStrategy {
    name: String,
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default = "restarts_max")]
    restarts_max: u32,
}

fn restarts_max() -> u32 {
    RESTARTS_MAX
}

/// Reads the strategies of a file, in its order.
pub fn read(path: &Path) -> anyhow::Result<Vec<Program>> {
    let shown = path.display();
    let text = text(path).with_context(|| format!("cannot read {shown}"))?;
    let file: OwnFile = toml::from_str(&text).with_context(|| format!("cannot parse {shown}"))?;
    let mut programs: Vec<Program> = Vec::new();
    for strategy in file.strategy {
        let name = strategy.name.clone();
        let program = program(strategy).with_context(|| format!("{shown}: strategy {name:?}"))?;
        ensure!(
            programs.iter().all(|other| other.name != name),
            "{shown}: two strategies are named {name:?}\nhint: use another name"
        );
        programs.push(program);
    }
    ensure!(!programs.is_empty(), "{shown} has no strategy\nhint: add a table [[strategy]]");
    Ok(programs)
}

/// The file's text. Its commands run as this user, so nobody else may be able to write it.
fn text(path: &Path) -> anyhow::Result<String> {
    let kind = TrustedKind { what: "the strategies", hint: "name a TOML file" };
    let file = kind.open(path)?;
    let is_own = |user| [0, geteuid().as_raw()].contains(&user);
    let trusted = kind.check_owners(path, &file, is_own);
    trusted.context("another user can write it, and its commands run as this user")?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= FILE_BYTES_MAX, "it is larger than 1 MiB\nhint: name a TOML file");
    Ok(text)
}

fn program(strategy: OwnStrategy) -> anyhow::Result<Program> {
    let OwnStrategy { name, command, environment, restarts_max } = strategy;
    let longest = NAME_BYTES_MAX - ORDERS_PREFIX.len();
    ensure!(
        is_name(&name) && name.len() <= longest,
        "invalid name\nhint: use 1 to {longest} characters of a-z, A-Z, 0-9, '.', '_' and '-', not starting with '.'"
    );
    ensure!(!is_reserved(&name), "a process of the run has this name\nhint: use another name");
    let Some((program, arguments)) = command.split_first().filter(|(program, _)| !program.is_empty()) else {
        bail!("its command is empty\nhint: give a list of the program and its arguments");
    };
    let given = [("LOWLAT_MASTER".to_owned(), MASTER.to_owned()), ("LOWLAT_NAME".to_owned(), name.clone())];
    Ok(Program {
        name,
        role: OWN.to_owned(),
        program: program.into(),
        arguments: arguments.to_vec(),
        environment: given.into_iter().chain(environment).collect(),
        cpus: Vec::new(),
        restarts_max,
        backs_off: true,
    })
}

/// True for the names of the run's other processes: roles, and numbered strategies and followers.
fn is_reserved(name: &str) -> bool {
    let mut roles = ProcessRole::PINNED.into_iter().chain([ProcessRole::Follower, ProcessRole::Host]);
    let word = name.trim_end_matches(|character: char| character.is_ascii_digit());
    roles.any(|role| role.name() == word) || (word == "s" && name != word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    fn read_text(text: &str, mode: u32) -> Result<Vec<Program>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("desk.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        read(&path).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_table_becomes_a_program() {
        let text = "[[strategy]]\nname = \"taker\"\ncommand = [\"./taker\", \"{master}\", \"3\"]\nrestarts_max = 2\n\
                    environment = { A = \"b\" }\n[[strategy]]\nname = \"maker\"\ncommand = [\"maker\"]\n";
        let programs = read_text(text, 0o644).unwrap();
        let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["taker", "maker"], "in the order of the file");
        let taker = &programs[0];
        assert_eq!((taker.arguments.join(" ").as_str(), taker.restarts_max), ("{master} 3", 2));
        let environment: BTreeMap<_, _> = taker.environment.iter().cloned().collect();
        assert_eq!((environment["A"].as_str(), environment["LOWLAT_NAME"].as_str()), ("b", "taker"));
        assert_eq!((programs[1].restarts_max, programs[1].backs_off), (RESTARTS_MAX, true));
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_place() {
        let table = |name: &str, rest: &str| format!("[[strategy]]\nname = \"{name}\"\n{rest}\n");
        let command = "command = [\"x\"]";
        for (text, said) in [
            (table("a", "comand = [\"x\"]"), "unknown field `comand`"),
            (table("a", "command = []"), "strategy \"a\": its command is empty"),
            (table("a b", command), "invalid name"),
            (table(&"a".repeat(58), command), "use 1 to 57 characters"),
            (table("td", command), "a process of the run has this name"),
            (table("s3", command), "a process of the run has this name"),
            (table("a", command).repeat(2), "two strategies are named \"a\""),
            ("strategy = []".to_owned(), "has no strategy"),
        ] {
            let error = read_text(&text, 0o600).unwrap_err();
            assert!(error.contains(said) && error.contains("desk.toml"), "{text}: {error}");
        }
        let error = read_text(&table("a", command), 0o620).unwrap_err();
        assert!(error.contains("another user can write it"), "{error}");
        assert!(read(Path::new("/dev/null")).unwrap_err().root_cause().to_string().contains("regular file"));
    }
}
