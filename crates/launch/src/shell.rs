//! The launch as a shell line.

use crate::{Launch, Memory};
use lowlat_host::snapshot::SchedPolicy;

/// Returns the command line that starts the command alike in a shell, below a comment for each thing that no program
/// of the line can do.
pub fn shell_lines(launch: &Launch, command: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    if launch.is_awake {
        lines.push("# Keep /dev/cpu_dma_latency open with the four bytes of 0 in it meanwhile.".to_owned());
    }
    if launch.all_cpus().len() > 1 {
        lines.push("# Pin each thread to one of the CPUs with taskset --pid.".to_owned());
    }
    let mut words = vec!["taskset".to_owned(), "-c".to_owned(), launch.all_cpus().to_list()];
    if let Some((policy, priority)) = launch.policy {
        let option = match policy {
            SchedPolicy::Fifo => "--fifo",
            SchedPolicy::Rr => "--rr",
            SchedPolicy::Batch => "--batch",
            SchedPolicy::Idle => "--idle",
            _ => "--other",
        };
        words.extend(["chrt".to_owned(), option.to_owned(), priority.to_string()]);
    }
    match launch.memory {
        Memory::Inherited => {}
        Memory::Local => words.extend(["numactl".to_owned(), "--localalloc".to_owned()]),
        Memory::Node(node) => words.extend(["numactl".to_owned(), format!("--membind={node}")]),
    }
    if !launch.environment.is_empty() {
        words.push("env".to_owned());
        words.extend(launch.environment.iter().map(|(name, value)| format!("{name}={value}")));
    }
    words.extend(launch.launcher.iter().chain(command).cloned());
    lines.push(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    lines
}

/// Quotes a word for a shell, if it needs that.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, ThreadMap};

    #[test]
    fn the_line_runs_the_same_command() {
        let mut launch = Launch {
            mode: Mode::Spin,
            cpus: vec![3],
            thread_map: ThreadMap::default(),
            policy: None,
            memory: Memory::Inherited,
            environment: Vec::new(),
            launcher: ["onload", "-p", "latency"].map(str::to_owned).to_vec(),
            is_awake: false,
            accelerator: None,
            warnings: Vec::new(),
        };
        let command = ["./app".to_owned(), "it's".to_owned()];
        assert_eq!(shell_lines(&launch, &command), [r"taskset -c 3 onload -p latency ./app 'it'\''s'"]);
        launch.cpus = vec![3, 2];
        launch.policy = Some((SchedPolicy::Fifo, 50));
        launch.memory = Memory::Node(1);
        launch.environment = vec![("A".into(), "b c".into())];
        launch.is_awake = true;
        let lines = shell_lines(&launch, &command[..1]);
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[2],
            "taskset -c 2-3 chrt --fifo 50 numactl --membind=1 env 'A=b c' onload -p latency ./app"
        );
    }
}
