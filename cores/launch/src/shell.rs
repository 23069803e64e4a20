//! The launch as a shell line.

use crate::{Launch, MemoryPolicy};
use lowlat_host::{CpuId, CpuSet, shell, snapshot::SchedPolicy};

/// Returns the shell lines that start the command in the same way, below a comment for each setting that they cannot
/// make. Copies are started together and waited for.
pub fn shell_lines(launch: &Launch, command: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    if launch.is_awake {
        lines.push("# Keep /dev/cpu_dma_latency open with the four bytes of 0 in it meanwhile.".to_owned());
    }
    if launch.copies.is_some() {
        let copies = launch.processes();
        let of_copy = |cpus: &Vec<CpuId>| line(launch, &cpus.iter().copied().collect(), command) + " &";
        lines.extend(copies.iter().map(of_copy));
        lines.push("wait".to_owned());
        return lines;
    }
    if launch.all_cpus().len() > 1 {
        let order: Vec<String> = launch.cpus.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "# Pin each new thread to the next of these CPUs with taskset --pid: {}",
            order.join(" ")
        ));
    }
    lines.push(line(launch, &launch.all_cpus(), command));
    lines
}

fn line(launch: &Launch, cpus: &CpuSet, command: &[String]) -> String {
    let mut words = vec!["taskset".to_owned(), "-c".to_owned(), cpus.to_list()];
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
        MemoryPolicy::Inherited => {}
        MemoryPolicy::Local => words.extend(["numactl".to_owned(), "--localalloc".to_owned()]),
        MemoryPolicy::Node(node) => words.extend(["numactl".to_owned(), format!("--membind={node}")]),
    }
    if !launch.environment.is_empty() {
        words.push("env".to_owned());
        words.extend(launch.environment.iter().map(|(name, value)| format!("{name}={value}")));
    }
    words.extend(launch.launcher.iter().chain(command).cloned());
    words.iter().map(|word| shell::word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_runs_the_same_command() {
        let mut launch = Launch {
            cpus: vec![3],
            launcher: ["onload", "-p", "latency"].map(str::to_owned).to_vec(),
            ..Launch::default()
        };
        let command = ["./app".to_owned(), "it's".to_owned()];
        assert_eq!(shell_lines(&launch, &command), [r"taskset -c 3 onload -p latency ./app 'it'\''s'"]);
        launch.cpus = vec![3, 2];
        launch.policy = Some((SchedPolicy::Fifo, 50));
        launch.memory = MemoryPolicy::Node(1);
        launch.environment = vec![("A".into(), "b c".into())];
        launch.is_awake = true;
        let lines = shell_lines(&launch, &command[..1]);
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[2],
            "taskset -c 2-3 chrt --fifo 50 numactl --membind=1 env 'A=b c' onload -p latency ./app"
        );
        assert!(lines[1].ends_with(": 3 2"), "{}", lines[1]);
    }

    #[test]
    fn copies_are_a_line_each() {
        let launch = Launch { cpus: vec![4, 0], copies: std::num::NonZeroU32::new(2), ..Launch::default() };
        let lines = shell_lines(&launch, &["./app".to_owned()]);
        assert_eq!(lines, ["taskset -c 4 ./app &", "taskset -c 0 ./app &", "wait"]);
    }
}
