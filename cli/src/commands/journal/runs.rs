//! Finds the pipeline that the user means.

use anyhow::{Context, bail};
use lowlat_node::address::RunFolder;
use std::{
    io::{self, ErrorKind},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// Socket of a master, from a run's name, its run folder or the socket's path; without any, that of
/// the only run.
pub fn socket(word: Option<&str>) -> anyhow::Result<PathBuf> {
    let Some(word) = word else { return only_one() };
    let path = Path::new(word);
    let socket = match word.contains('/') {
        true if path.is_dir() => RunFolder::at(path)?.socket(),
        true => path.to_owned(),
        false => RunFolder::named(word).context("--run")?.socket(),
    };
    let why = match is_socket(&socket) {
        Ok(true) => return Ok(socket),
        Ok(false) => format!("{} is not a master's socket", socket.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => format!("{} does not exist", socket.display()),
        Err(error) => bail!(
            "cannot look for the run of --run {word}: {}: {error}\nhint: run this as the user who started it",
            socket.display()
        ),
    };
    // That the other runs cannot be listed is no reason.
    let hint = known().map_or_else(|error| format!("hint: {error:#}"), |runs| known_words(&runs));
    bail!("cannot find the run of --run {word}: {why}\n{hint}")
}

/// The only run of this user.
fn only_one() -> anyhow::Result<PathBuf> {
    let runs = known()?;
    match runs.names.as_slice() {
        [one] => Ok(RunFolder::named(one)?.socket()),
        [] => bail!("no pipeline is running\n{}", known_words(&runs)),
        names => bail!("several pipelines are running: {}\nhint: choose one with --run", names.join(", ")),
    }
}

/// The runs in the directory of this user's runs.
struct Runs {
    folders: PathBuf,
    /// Names of those that have a master's socket, sorted.
    names: Vec<String>,
}

fn known() -> anyhow::Result<Runs> {
    // The name is arbitrary: only the parent directory matters.
    let any = RunFolder::named("any").context("--run")?;
    let folders = any.path().parent().unwrap_or(any.path()).to_owned();
    let entries = match std::fs::read_dir(&folders) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        entries => Some(entries.with_context(|| format!("cannot look for runs in {}", folders.display()))?),
    };
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| RunFolder::named(name).is_ok_and(|run| is_socket(&run.socket()).unwrap_or(false)))
        .collect();
    names.sort();
    Ok(Runs { folders, names })
}

/// A hint: which runs this user has, or how to start one.
fn known_words(Runs { folders, names }: &Runs) -> String {
    let folders = folders.display();
    if names.is_empty() {
        format!(
            "hint: start one with lowlat pipeline run, or give --run the path of a master's socket; {folders} has none"
        )
    } else {
        format!("hint: choose one of those in {folders}: {}", names.join(", "))
    }
}

fn is_socket(path: &Path) -> io::Result<bool> {
    Ok(path.symlink_metadata()?.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_what_is_no_socket_and_what_cannot_be_read_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let said = |path: &Path| socket(path.to_str()).unwrap_err().to_string();
        assert!(said(&folder.path().join("none")).contains("none does not exist"));
        assert!(said(&file).contains("file is not a master's socket"));
        let below = said(&file.join("master.sock"));
        assert!(below.starts_with("cannot look for") && below.contains("Not a directory"), "{below}");
    }
}
