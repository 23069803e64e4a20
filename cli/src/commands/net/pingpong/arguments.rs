//! Arguments of `lowlat net pingpong`.

use crate::{
    arguments::{duration, time_ns, word},
    commands::{
        examples, help,
        outputs::{FileArgs, Form},
    },
    host::RoleArgs,
};
use clap::{Args, builder::PossibleValuesParser};
use lowlat_host::CpuId;
use lowlat_net::{
    pingpong::{Muxer, Scenario, Transport, Waiting, parse_sizes},
    xdp::{XdpEnds, XdpMode, XdpOptions},
};
use std::{net::IpAddr, path::PathBuf, time::Duration};

/// Port of the server unless another is named.
pub const PORT: u16 = 12_048;

/// Measure round trips between a client and a server, or read logs of sfnt-pingpong
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = examples(&[
    ("lowlat net pingpong client tcp 10.0.0.2 --wait spin", "Measure all sizes, with both ends spinning on isolated CPUs."),
    ("lowlat net pingpong client udp 10.0.0.2 --rate 10000 --hold-idle", "Send 10,000 messages per second, whether or not the server keeps up."),
    ("lowlat net pingpong client unix-stream", "Run both ends on this host."),
    ("lowlat net pingpong --import sfnt.log", "Show a log of sfnt-pingpong, and what makes it doubtful."),
]))]
#[command(args_conflicts_with_subcommands = true)]
pub struct NetPingpongArgs {
    /// Read the output of sfnt-pingpong 1.0.0 to 1.6.0 from these files, also quoted, from syslog or with damaged rows
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["hlog", "report", "result"], required_unless_present = "reference")]
    pub import: Vec<PathBuf>,
    /// Show the published tables of sfnt-pingpong over Onload (2019), marked doubtful
    #[arg(long, conflicts_with_all = ["import", "hlog", "report", "result"])]
    pub reference: bool,
    #[command(flatten)]
    pub outputs: OutputArgs,
    #[command(subcommand)]
    pub action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Measure round trips to a server, or inside this host
    Client(Box<ClientArgs>),
}

/// How both ends of a measurement wait, and where.
#[derive(Debug, Args)]
pub struct EndArgs {
    /// System call that waits for messages
    #[arg(long, default_value = "none", value_parser = PossibleValuesParser::new(Muxer::ALL.iter().map(|of| of.word())))]
    pub muxer: String,
    /// What both ends do until a message arrives
    #[arg(long, default_value = "block", value_parser = PossibleValuesParser::new(Waiting::ALL.iter().map(|of| of.word())))]
    pub wait: String,
    /// How long the kernel polls the NIC's queue per call in the polling modes
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = time_ns)]
    pub busy_poll: u64,
    /// CPU of the client [default: an isolated one, else the highest]
    #[arg(long, value_name = "CPU")]
    pub client_cpu: Option<CpuId>,
    /// CPU of the server [default: an isolated one of its host, else the highest]
    #[arg(long, value_name = "CPU")]
    pub server_cpu: Option<CpuId>,
    /// Hold the CPUs of both hosts out of idle states during the run
    #[arg(long)]
    pub hold_idle: bool,
}

impl EndArgs {
    /// The scenario with what they say. The parser accepts no other words.
    pub fn of(&self, scenario: Scenario) -> Scenario {
        Scenario {
            muxer: Muxer::of_word(&self.muxer).unwrap_or(Muxer::None),
            waiting: Waiting::of_word(&self.wait).unwrap_or(Waiting::Block),
            busy_poll_us: u32::try_from(self.busy_poll / 1_000).unwrap_or(u32::MAX),
            client_cpu: self.client_cpu,
            server_cpu: self.server_cpu,
            holds_idle: self.hold_idle,
            ..scenario
        }
    }
}

/// Arguments of the client.
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 everything was measured, 2 error, 4 it ended before, 130 interrupted.", &[
    ("lowlat net pingpong client tcp 10.0.0.2", "Measure every size over TCP, blocking."),
    ("lowlat net pingpong client udp 10.0.0.2 --sizes 32 --wait busy-poll", "Let the kernel poll the NIC's queue."),
    ("lowlat net pingpong client xdp 10.0.0.2 --wait spin", "Bypass the kernel's network stack on both hosts, with any NIC."),
    ("lowlat net pingpong client udp 10.0.0.2 --sizes 32 --parts", "Show where the time of each message goes, and why the slowest are slow."),
    ("lowlat net pingpong client tcp 10.0.0.2 --duration 10s --format sfnt", "Print the table of sfnt-pingpong --maxms=10000 tcp 10.0.0.2."),
]))]
pub struct ClientArgs {
    /// Transport of the messages
    #[arg(value_name = "TRANSPORT", value_parser = PossibleValuesParser::new(Transport::ALL.iter().map(|of| of.word())))]
    pub transport: String,
    /// The server: a name or address, with :PORT unless it is 12048; none for pipe and unix-*
    #[arg(value_name = "HOST")]
    pub host: Option<String>,
    /// Sizes in bytes: 32,64 or 8-64+8 or 1-1024*2 [default: sfnt-pingpong's 17 or 19 sizes; for xdp those up to 1472]
    #[arg(long, value_name = "LIST")]
    pub sizes: Option<String>,
    #[command(flatten)]
    pub ends: EndArgs,
    /// Send this many messages per second, and count latency from the time when each was due [default: send each one when the previous answer arrives]
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// Measure one size for at most this long
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub duration: Duration,
    /// Measure at most this many round trips of one size
    #[arg(long, value_name = "COUNT", default_value_t = Scenario::default().iterations_max)]
    pub iterations: u64,
    /// Measure at least this many round trips of one size, even if they take longer than --duration [default: 1000, at most --iterations]
    #[arg(long, value_name = "COUNT")]
    pub min_iterations: Option<u64>,
    /// Unmeasured round trips before the first size; a tenth of it before the others
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration)]
    pub warm_up: Duration,
    /// Count a UDP message as lost when its answer takes longer; with other transports, end the run
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub timeout: Duration,
    /// Multicast group of udp-multicast, for both directions
    #[arg(long, value_name = "ADDRESS")]
    pub group: Option<IpAddr>,
    /// Where xdp takes frames from the NIC, and whether it copies them; auto takes the fastest mode of the driver
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = PossibleValuesParser::new(XdpMode::ALL.iter().map(|of| of.word())))]
    pub xdp_mode: String,
    /// Ends that use AF_XDP with xdp; with client, the server uses a UDP socket of the kernel
    #[arg(long, value_name = "ENDS", default_value = "both", value_parser = PossibleValuesParser::new(XdpEnds::ALL.iter().map(|of| of.word())))]
    pub xdp_ends: String,
    /// Leave Nagle's algorithm on (no TCP_NODELAY)
    #[arg(long)]
    pub nagle: bool,
    /// Acknowledge each TCP segment at once (TCP_QUICKACK)
    #[arg(long)]
    pub quickack: bool,
    /// Split each round trip into parts that add up, in rounds of their own with time stamps, and find what made the slowest ones slow
    #[arg(long)]
    pub parts: bool,
    /// Percentile of sfnt-pingpong's column %ile
    #[arg(long, value_name = "PERCENT", default_value_t = 99.0, value_parser = percentile)]
    pub percentile: f64,
    /// Write every half round trip to PREFIX-SIZE.dat, in ns and in the order of sending, as sfnt-pingpong does
    #[arg(long, value_name = "PREFIX")]
    pub raw: Option<PathBuf>,
    /// Measure even if the figures would not be meaningful, and mark the result
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub outputs: OutputArgs,
    #[command(flatten)]
    pub role: RoleArgs,
}

/// What comes out of a run, and where.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print tables on stdout, or the format of sfnt-pingpong 1.6.0 or 1.5.0, or JSON
    #[arg(long, default_value = "text", value_parser = word([Form::TEXT, Form::SFNT, Form::SFNT_V15, Form::JSON]))]
    pub format: Form,
    /// Print JSON on stdout, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write the histograms as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    #[command(flatten)]
    pub files: FileArgs,
}

impl OutputArgs {
    /// True if any output but text on stdout is requested.
    pub fn is_asked_for(&self) -> bool {
        self.json
            || self.format != Form::Text
            || [&self.hlog, &self.files.report, &self.files.result].into_iter().any(Option::is_some)
    }
}

impl ClientArgs {
    /// The scenario, without CPUs that the user did not name.
    pub fn scenario(&self) -> anyhow::Result<Scenario> {
        // The parser accepts no other words.
        let transport = Transport::of_word(&self.transport).unwrap_or(Transport::Tcp);
        let sizes = match &self.sizes {
            Some(list) => size_list(list, "--sizes")?,
            None => transport.default_sizes(),
        };
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let iterations_min = Scenario::default().iterations_min.min(self.iterations);
        Ok(self.ends.of(Scenario {
            transport,
            sizes,
            is_nodelay: !self.nagle,
            is_quickack: self.quickack,
            time_ms_max: ms(self.duration),
            iterations_min: self.min_iterations.unwrap_or(iterations_min),
            iterations_max: self.iterations,
            warm_up_ms: ms(self.warm_up),
            rate_per_s: self.rate,
            group: self.group,
            xdp: (transport == Transport::Xdp).then(|| XdpOptions {
                mode: XdpMode::of_word(&self.xdp_mode).unwrap_or(XdpMode::Auto),
                ends: XdpEnds::of_word(&self.xdp_ends).unwrap_or(XdpEnds::Both),
            }),
            timeout_ms: ms(self.timeout),
            has_parts: self.parts,
            ..Scenario::default()
        }))
    }

    /// The server with its port; empty for local transports.
    pub fn server(&self, scenario: &Scenario) -> anyhow::Result<String> {
        match &self.host {
            None if scenario.is_local() => Ok(String::new()),
            None => anyhow::bail!(
                "no server named\nhint: name the host where `lowlat net server` runs, such as `{} 10.0.0.2`",
                self.transport
            ),
            Some(_) if scenario.is_local() => anyhow::bail!(
                "{} measures inside this host and takes no server\nhint: leave out the host",
                self.transport
            ),
            Some(host) => Ok(with_port(host)),
        }
    }
}

/// Parses a list of sizes; `option` is the flag that named it.
pub fn size_list(list: &str, option: &str) -> anyhow::Result<Vec<u32>> {
    parse_sizes(list).map_err(|error| anyhow::anyhow!("{option}: {error}"))
}

/// Adds the default port to a name, an IPv4 address, or an IPv6 address with or without brackets.
pub fn with_port(host: &str) -> String {
    if let Ok(IpAddr::V6(address)) = host.parse() {
        return format!("[{address}]:{PORT}");
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port && (host.matches(':').count() == 1 || host.contains("]:")) {
        host.to_owned()
    } else {
        format!("{host}:{PORT}")
    }
}

/// Parses a percentile from 0 to 100.
pub fn percentile(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| format!("\"{text}\" is not a percentile; write one such as 99 or 99.9"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_the_default_port() {
        for (host, shown) in [
            ("10.0.0.2", "10.0.0.2:12048"),
            ("10.0.0.2:7", "10.0.0.2:7"),
            ("desk7", "desk7:12048"),
            ("::1", "[::1]:12048"),
            ("[::1]", "[::1]:12048"),
            ("[::1]:7", "[::1]:7"),
        ] {
            assert_eq!(with_port(host), shown);
        }
    }
}
