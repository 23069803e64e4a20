//! Which pipeline is meant.

use anyhow::{Context, bail};
use lowlat_trade::address::RunFolder;
use std::{
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// The socket of a master: of that name, of that run folder, or that socket itself; without a word that of the only one
/// that is there.
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
    bail!("--run {word}: {} is no socket of a master; {}", socket.display(), known_words(&any))
}

/// The only run of this user.
fn only_one() -> anyhow::Result<PathBuf> {
    // The name is any: what counts is the folder above.
    let any = RunFolder::named("any").context("--run")?.socket();
    match known(&any).as_slice() {
        [one] => Ok(RunFolder::named(one)?.socket()),
        [] => bail!("no pipeline runs: {}", known_words(&any)),
        _ => bail!("several pipelines run: {}; name one with --run", known_words(&any)),
    }
}

/// The names of the runs beside one.
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

fn known_words(socket: &Path) -> String {
    let names = known(socket);
    let folders = socket.parent().and_then(Path::parent).unwrap_or(socket).display();
    if names.is_empty() {
        format!(
            "{folders} has no run of this user; start one, such as `lowlat pipeline run`, or give the path of a master's socket to --run"
        )
    } else {
        format!("{folders} has {}", names.join(", "))
    }
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|known| known.file_type().is_socket())
}
