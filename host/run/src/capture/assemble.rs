//! Converts a recording into the tree of a capture.

use crate::{
    root::{DENIED_LIST, FAILED_LIST, NAMES_LIST, Outcome, Recording, VALUELESS_LIST},
    task_stat::TaskStat,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct CaptureTree {
    /// Contents of files, by path.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Targets of links, by path.
    pub(super) links: BTreeMap<String, String>,
    /// Listed directories. Directories above files come with the files.
    pub(super) folders: BTreeSet<String>,
    /// The lists of paths without content: file of the list to its lines.
    pub(super) notes: BTreeMap<&'static str, BTreeSet<String>>,
}

impl CaptureTree {
    pub(super) fn insert_file(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), bytes);
    }

    pub(super) fn content_bytes(&self) -> u64 {
        self.files.values().map(|bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX)).sum()
    }

    fn note(&mut self, list: &'static str, line: impl Into<String>) {
        self.notes.entry(list).or_default().insert(line.into());
    }

    fn note_failure<T>(&mut self, path: &str, outcome: &Outcome<T>) {
        match outcome {
            Outcome::Value(_) => {}
            Outcome::Valueless => self.note(VALUELESS_LIST, path),
            Outcome::Denied => self.note(DENIED_LIST, path),
            Outcome::Failed(words) => self.note(FAILED_LIST, format!("{path}\t{words}")),
        }
    }
}

pub(super) fn assemble(mut recording: Recording) -> CaptureTree {
    drop_user_processes(&mut recording);
    let mut tree = CaptureTree::default();
    let Recording { reads, lists, links, found, .. } = recording;
    for (path, outcome) in &lists {
        match outcome {
            Outcome::Value(names) => {
                tree.folders.insert(path.clone());
                let parent = path.trim_end_matches('/');
                for name in names.iter().filter(|name| !name.contains(char::is_control)) {
                    tree.note(NAMES_LIST, format!("{parent}/{name}"));
                }
            }
            failure => tree.note_failure(path, failure),
        }
    }
    for (path, outcome) in reads {
        match outcome {
            Outcome::Value(bytes) => tree.insert_file(&path, bytes),
            // Reading a directory fails; the listing is enough.
            _ if tree.folders.contains(&path) => {}
            failure => tree.note_failure(&path, &failure),
        }
    }
    tree.links = links;
    for path in found {
        tree.note(NAMES_LIST, path);
    }
    keep_names_without_content(&mut tree);
    tree
}

/// A name needs no separate line if the tree has something at or below it.
fn keep_names_without_content(tree: &mut CaptureTree) {
    let Some(mut names) = tree.notes.remove(NAMES_LIST) else { return };
    let told = [DENIED_LIST, VALUELESS_LIST, FAILED_LIST].iter().filter_map(|list| tree.notes.get(list));
    let told = told.flatten().map(|line| line.split('\t').next().unwrap_or_default());
    let content = tree.files.keys().chain(tree.links.keys()).chain(&tree.folders).map(String::as_str);
    let all: BTreeSet<&str> = told.chain(content).collect();
    names.retain(|path| {
        let below = format!("{path}/");
        path != "/"
            && !all.contains(path.as_str())
            && !all.range(below.as_str()..).next().is_some_and(|next| next.starts_with(&below))
    });
    tree.notes.insert(NAMES_LIST, names);
}

/// The status of process 1, whose CPUs are those of every process that requests none.
const FIRST_PROCESS: &str = "/proc/1/status";

/// Removes every process that is not known to be a kernel thread, and its number from the list of /proc.
fn drop_user_processes(recording: &mut Recording) {
    let kernel_threads: BTreeSet<String> = recording
        .reads
        .iter()
        .filter_map(|(path, outcome)| {
            let pid = process_of(path)?;
            let is_stat = path.strip_prefix("/proc/")?.strip_prefix(pid)? == "/stat";
            let Outcome::Value(stat) = outcome else { return None };
            (is_stat && is_kernel_thread(stat)).then(|| pid.to_owned())
        })
        .collect();
    let is_kept = |path: &str| process_of(path).is_none_or(|pid| kernel_threads.contains(pid));
    recording.reads.retain(|path, _| is_kept(path) || path == FIRST_PROCESS);
    recording.lists.retain(|path, _| is_kept(path));
    recording.links.retain(|path, _| is_kept(path));
    recording.found.retain(|path| is_kept(path));
    if let Some(Outcome::Value(names)) = recording.lists.get_mut("/proc") {
        names.retain(|name| is_kept(&format!("/proc/{name}")));
    }
}

/// The process number in "/proc/123" and in paths below it.
fn process_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/proc/")?.split('/').next()?;
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

fn is_kernel_thread(stat: &[u8]) -> bool {
    TaskStat::parse(&String::from_utf8_lossy(stat)).is_some_and(|stat| stat.is_kernel_thread())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kernel_threads_are_kept() {
        assert!(is_kernel_thread(b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0"));
        assert!(!is_kernel_thread(b"1 (a) S) S 0 1 1 0 -1 4194560 0"));
        assert!(!is_kernel_thread(b"1 (sys"));
        assert_eq!(process_of("/proc/12/stat"), Some("12"));
        assert_eq!(process_of("/proc/irq/12"), None);
    }
}
