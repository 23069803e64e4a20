//! Half round trips over loopback: lowlat beside sfnt-pingpong and sockperf; or lowlat's waiting modes over a virtual link.

mod programs;
mod veth;

use crate::{
    rounds::{in_rounds, print_ratio_of},
    tools,
};
use programs::{Figures, Program};
use std::fmt;

/// Round trips over sockets beside sfnt-pingpong and sockperf.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// CPUs of client and server
    #[arg(long, value_delimiter = ',', default_values_t = [1, 0])]
    cpus: Vec<u32>,
    /// Rounds, each of one run of every program
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Seconds of one run of a round
    #[arg(long, default_value_t = 1)]
    seconds: u32,
    /// Size of messages in bytes
    #[arg(long, default_value_t = 32)]
    size: u32,
    /// Compare lowlat's waiting modes between two network namespaces instead, as root
    #[arg(long)]
    veth: bool,
}

/// Conditions of one comparison of programs.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Messages go over TCP; over UDP otherwise.
    pub is_tcp: bool,
    /// Both ends spin; they block otherwise.
    pub is_spinning: bool,
    pub client_cpu: u32,
    pub server_cpu: u32,
    /// Duration of a run, in seconds.
    pub seconds: u32,
    /// Size of a message, in bytes.
    pub size: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = if self.is_tcp { "tcp" } else { "udp" };
        let waiting = if self.is_spinning { "spin" } else { "block" };
        write!(f, "{transport} {waiting}")
    }
}

/// Runs all comparisons and prints them.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (client_cpu, server_cpu) = match arguments.cpus.as_slice() {
        [client, server] => (*client, *server),
        _ => anyhow::bail!("--cpus takes two CPUs: client,server"),
    };
    if arguments.veth {
        return veth::run(arguments, client_cpu, server_cpu);
    }
    let lowlat = tools::lowlat()?;
    println!("lowlat         {}", lowlat.display());
    let peers: Vec<Program> =
        [("sfnt-pingpong", Program::Sfnt as fn(_) -> _), ("sockperf", Program::Sockperf)]
            .into_iter()
            .filter_map(|(name, make)| {
                let found = tools::on_path(name);
                let shown =
                    found.as_ref().map_or("not on PATH: left out".into(), |path| path.display().to_string());
                println!("{name:<14} {shown}");
                found.map(make)
            })
            .collect();
    let ours = Program::Lowlat(lowlat);
    for (is_tcp, is_spinning) in [(true, true), (true, false), (false, true), (false, false)] {
        let Arguments { seconds, size, .. } = *arguments;
        let case = Case { is_tcp, is_spinning, client_cpu, server_cpu, seconds, size };
        for theirs in &peers {
            compare(arguments.rounds, &ours, theirs, case)?;
        }
    }
    Ok(())
}

fn compare(rounds: u32, ours: &Program, theirs: &Program, case: Case) -> anyhow::Result<()> {
    let name = theirs.name();
    let tell = |round, our: &Figures, their: &Figures| {
        println!(
            "{case} round {round:>2}  median {:>7.0} ns | {:>7.0} ns   mean {:>7.0} ns | {:>7.0} ns   (lowlat | {name})",
            our.median_ns, their.median_ns, our.mean_ns, their.mean_ns
        );
    };
    let runs = in_rounds(rounds, || ours.run(case), || theirs.run(case), tell)?;
    print_ratio_of(&format!("{case} median, lowlat / {name}"), &runs, |run| run.median_ns);
    print_ratio_of(&format!("{case} mean, lowlat / {name}"), &runs, |run| run.mean_ns);
    Ok(())
}
