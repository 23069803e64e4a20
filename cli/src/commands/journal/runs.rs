//! Finds the pipeline that the user means.

use anyhow::{Context, bail};
use lowlat_node::address::RunFolder;
use std::{
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
    if is_socket(&socket) {
        return Ok(socket);
    }
    let any = RunFolder::named("any").context("--run")?.socket();
    bail!(
        "cannot find the run of --run {word}: {} is not a master's socket\n{}",
        socket.display(),
        known_words(&any)
    )
}

/// The only run of this user.
fn only_one() -> anyhow::Result<PathBuf> {
    // The name is arbitrary: only the parent directory matters.
    let any = RunFolder::named("any").context("--run")?.socket();
    match known(&any).as_slice() {
        [one] => Ok(RunFolder::named(one)?.socket()),
        [] => bail!("no pipeline is running\n{}", known_words(&any)),
        names => bail!("several pipelines are running: {}\nhint: choose one with --run", names.join(", ")),
    }
}

/// Lists the runs in the directory of this one.
fn known(socket: &Path) -> Vec<String> {
    let folders = socket.parent().and_then(Path::parent);
    let entries = folders.and_then(|folders| std::fs::read_dir(folders).ok());
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| RunFolder::named(name).is_ok_and(|folder| is_socket(&folder.socket())))
        .collect();
    names.sort();
    names
}

/// A hint: which runs this user has, or how to start one.
fn known_words(socket: &Path) -> String {
    let names = known(socket);
    let folders = socket.parent().and_then(Path::parent).unwrap_or(socket).display();
    if names.is_empty() {
        format!(
            "hint: start one with lowlat pipeline run, or give --run the path of a master's socket; {folders} has none"
        )
    } else {
        format!("hint: choose one of those in {folders}: {}", names.join(", "))
    }
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|known| known.file_type().is_socket())
}
