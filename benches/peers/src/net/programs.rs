//! The programs, each with its server.

use super::Case;
use crate::tools;
use anyhow::{Context, bail};
use lowlat_net::sfnt;
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

const HOST: &str = "127.0.0.1";
const SOCKPERF_PORT: &str = "21111";
/// Time in which sockperf's server starts to listen; its client does not try again.
const SOCKPERF_START: Duration = Duration::from_millis(500);
/// Smallest message of sockperf, in bytes.
const SOCKPERF_BYTES_MIN: u32 = 14;

/// A program that measures round trips.
#[derive(Debug)]
pub enum Program {
    Lowlat(PathBuf),
    Sfnt(PathBuf),
    Sockperf(PathBuf),
}

/// Half round trips of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    pub mean_ns: f64,
    pub median_ns: f64,
}

/// A server that is killed when dropped.
pub struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> anyhow::Result<Self> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        started.map(Self).with_context(|| format!("cannot start {command:?}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended after its one client.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lowlat(_) => "lowlat",
            Self::Sfnt(_) => "sfnt-pingpong",
            Self::Sockperf(_) => "sockperf",
        }
    }

    /// Runs it once, with its server.
    pub fn run(&self, case: Case) -> anyhow::Result<Figures> {
        match self {
            Self::Lowlat(program) => lowlat(program, case),
            Self::Sfnt(program) => sfnt_pingpong(program, case),
            Self::Sockperf(program) => sockperf(program, case),
        }
    }
}

/// Starts lowlat's server by a command to which its arguments are added; returns its address and port too.
pub fn lowlat_server(command: &mut Command, host: &str, more: &[&str]) -> anyhow::Result<(Server, String)> {
    let listen = format!("{host}:0");
    command.args(["net", "server", "--listen", &listen]).args(more).stderr(Stdio::piped());
    let mut server = Server::start(command)?;
    let mut line = String::new();
    let said = server.0.stderr.as_mut().context("the server has no output")?;
    BufReader::new(said).read_line(&mut line)?;
    let address =
        line.trim().strip_prefix("listening on ").with_context(|| format!("lowlat said {line:?}"))?;
    Ok((server, address.to_owned()))
}

fn lowlat(program: &Path, case: Case) -> anyhow::Result<Figures> {
    let (_server, address) = lowlat_server(&mut Command::new(program), HOST, &["--once"])?;
    let transport = if case.is_tcp { "tcp" } else { "udp" };
    let waiting = if case.is_spinning { "spin" } else { "block" };
    let arguments = format!(
        "net pingpong client {transport} {address} --wait {waiting} --sizes {} --duration {}s --client-cpu {} --server-cpu {} \
         --format sfnt",
        case.size, case.seconds, case.client_cpu, case.server_cpu
    );
    table(&run(program, &arguments)?)
}

fn sfnt_pingpong(program: &Path, case: Case) -> anyhow::Result<Figures> {
    let server = Command::new(program)
        .arg("--affinity")
        .arg(case.server_cpu.to_string())
        .stderr(Stdio::null())
        .spawn();
    let _server = Server(server.context("cannot start sfnt-pingpong")?);
    let arguments = format!(
        "--affinity {};{} --sizes {} --maxms {} --minms {}{} {} {HOST}",
        case.client_cpu,
        case.server_cpu,
        case.size,
        u64::from(case.seconds) * 1_000,
        u64::from(case.seconds) * 1_000,
        if case.is_spinning { " --spin" } else { "" },
        // As lowlat's: without it, each message looks its route up.
        if case.is_tcp { "tcp" } else { "--connect udp" },
    );
    table(&run(program, &arguments)?)
}

fn sockperf(program: &Path, case: Case) -> anyhow::Result<Figures> {
    let taskset = tools::on_path("taskset").context("sockperf needs taskset on PATH")?;
    let mode = format!(
        "{}{}",
        if case.is_tcp { " --tcp" } else { "" },
        if case.is_spinning { " --nonblocked" } else { "" }
    );
    let own = format!("-c {} {}", case.server_cpu, program.display());
    let server = format!("{own} server -i {HOST} -p {SOCKPERF_PORT}{mode}");
    let _server = Server::start(Command::new(&taskset).args(server.split(' ')).stderr(Stdio::null()))?;
    thread::sleep(SOCKPERF_START);
    let client = format!(
        "-c {} {} ping-pong -i {HOST} -p {SOCKPERF_PORT} -m {} -t {}{mode}",
        case.client_cpu,
        program.display(),
        case.size.max(SOCKPERF_BYTES_MIN),
        case.seconds
    );
    summary(&run(&taskset, &client)?)
}

fn run(program: &Path, arguments: &str) -> anyhow::Result<String> {
    let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    let output = tools::run(program, &arguments, &[0])?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The row of sfnt-pingpong's format.
fn table(text: &str) -> anyhow::Result<Figures> {
    let logs = sfnt::parse(text)?;
    let row = logs.first().and_then(|log| log.rows.first()).context("the table is empty")?;
    Ok(Figures { mean_ns: row.figures.mean_ns as f64, median_ns: row.figures.median_ns as f64 })
}

/// Mean and median of sockperf's text, which has half round trips in microseconds.
fn summary(text: &str) -> anyhow::Result<Figures> {
    let number = |start: &str| -> Option<f64> {
        let rest = text.split_once(start)?.1.trim_start_matches([' ', '=']);
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    };
    match (number("avg-latency"), number("percentile 50.000")) {
        (Some(mean), Some(median)) => Ok(Figures { mean_ns: mean * 1e3, median_ns: median * 1e3 }),
        _ => bail!("sockperf's output has no mean and median: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockperf_s_summary_is_read() {
        let text = "sockperf: \u{1b}[2;35m====> avg-latency=65.169 (std-dev=215.803)\u{1b}[0m\n\
                    sockperf: ---> percentile 90.000 =   44.643\nsockperf: ---> percentile 50.000 =   25.154\n";
        assert_eq!(summary(text).unwrap(), Figures { mean_ns: 65_169.0, median_ns: 25_154.0 });
        assert!(summary("sockperf: ERROR: connection refused").is_err());
    }
}
