//! `lowlat net server`: the other end of `net pingpong`, `net stream` and `net choose`.

use super::pingpong::{PORT, server_with_port};
use crate::{commands::examples, exit::Exit, output, signals};
use clap::Args;
use lowlat_host::CpuId;
use lowlat_host_run::Root;
use lowlat_net_run::{self as net, ServerEvent, ServerOptions};
use std::net::SocketAddr;

/// Answer clients of pingpong, stream and choose until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = examples(&[
    ("lowlat net server", "Answer clients on port 12048, one run at a time."),
    ("lowlat net server --listen 10.0.0.2", "Answer on one address only."),
    ("lowlat net server --cpu 3 --once", "Answer one run, on CPU 3."),
]))]
pub struct NetServerArgs {
    /// Listen on this address; repeatable [default: every address]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Vec<SocketAddr>,
    /// Answer on this CPU [default: the one that the client asks for, else an isolated one]
    #[arg(long, value_name = "CPU")]
    cpu: Option<CpuId>,
    /// End after one run, as sfnt-pingpong
    #[arg(long)]
    once: bool,
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("\"{text}\" is not an address; write one such as 10.0.0.2 or [::1]:12048");
    server_with_port(text).parse().map_err(|_| wrong())
}

pub fn run(arguments: &NetServerArgs) -> anyhow::Result<Exit> {
    let listen =
        if arguments.listen.is_empty() { net::everywhere(PORT).to_vec() } else { arguments.listen.clone() };
    let options = ServerOptions { listen, cpu: arguments.cpu, is_single: arguments.once };
    let stop = signals::stop_flag()?;
    net::run_server(&Root::live(), &options, &stop, &|event| output::talk(&in_words(event)))?;
    Ok(Exit::Clean)
}

fn in_words(event: &ServerEvent) -> String {
    match event {
        ServerEvent::Listens(address) => format!("listening on {address}"),
        ServerEvent::Started { peer, what, cpu } => {
            let cpu = cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
            format!("{peer}: {what}{cpu}")
        }
        ServerEvent::Ended { peer, answered, error: None } => format!("{peer}: answered {answered} messages"),
        ServerEvent::Ended { peer, answered, error: Some(error) } => {
            format!("{peer}: answered {answered} messages, then: {error}")
        }
        ServerEvent::Refused { peer, why } => format!("{peer}: refused: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_no_port() {
        assert!(listen_address("nowhere").is_err() && listen_address("::").is_ok());
    }
}
