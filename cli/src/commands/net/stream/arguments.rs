//! Arguments of `lowlat net stream`.

use crate::{
    arguments::{duration, time_ns, word},
    commands::{
        examples, help,
        net::pingpong::{EndArgs, percentile},
        outputs::{FileArgs, Form},
    },
    host::RoleArgs,
};
use clap::{Args, builder::PossibleValuesParser};
use lowlat_net::{
    pingpong::{Scenario, Transport, parse_sizes},
    stream::{HEADER_BYTES, LatencyKind, RATE_MAX_PER_S, StreamOptions},
};
use std::time::Duration;

/// Find the highest rate of messages that arrive without loss and in time
#[derive(Debug, clap::Subcommand)]
#[command(arg_required_else_help = true)]
#[command(after_help = examples(&[
    ("lowlat net stream client udp 10.0.0.2 --wait spin --p99 50us", "Search for the highest rate without loss and with p99 within 50 us."),
    ("lowlat net stream client udp 10.0.0.2 --rates 10000-100000+10000", "Measure ten rates, three times each."),
]))]
pub enum Action {
    /// Send messages to a server at rising rates
    Client(Box<StreamClientArgs>),
}

/// Arguments of the client.
#[derive(Debug, Args)]
#[command(mut_arg("muxer", |muxer| muxer.help("System call in which the server waits for messages")))]
#[command(mut_arg("wait", |wait| wait.help("What the server does until a message arrives; the client spins until one is due")))]
#[command(after_help = help("Exit codes: 0 everything was measured, 2 error, 4 it ended before, 130 interrupted.", &[
    ("lowlat net stream client udp 10.0.0.2", "Search for the highest rate without loss."),
    ("lowlat net stream client udp 10.0.0.2 --rates 10000,20000 --format sfnt", "Print the table of sfnt-stream; latency counts from when a message was due."),
]))]
pub struct StreamClientArgs {
    /// Transport of the messages
    #[arg(value_name = "TRANSPORT", value_parser = PossibleValuesParser::new(["udp", "tcp"]))]
    pub transport: String,
    /// The server: a name or address, with :PORT unless it is 12048
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Measure these rates in messages per second: 10000,20000 or 10000-50000+10000 or 1000-64000*2 [default: search for the highest rate that holds]
    #[arg(long, value_name = "LIST")]
    pub rates: Option<String>,
    /// Start the search at this rate; double it until a round fails, then bisect
    #[arg(long, value_name = "PER_SECOND", default_value_t = 10_000, conflicts_with = "rates", value_parser = clap::value_parser!(u32).range(1..))]
    pub sweep: u32,
    /// Let a rate hold only if p99 of latency is at most this
    #[arg(long, value_name = "TIME", value_parser = time_ns)]
    pub p99: Option<u64>,
    /// Measure each rate this many times; in a search, only the one that it ends with
    #[arg(long, value_name = "COUNT", default_value_t = StreamOptions::default().rounds, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Send for this long in each round
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub duration: Duration,
    /// Size of the messages in bytes, at least 24
    #[arg(long, value_name = "BYTES", default_value_t = 32)]
    pub size: u32,
    /// How to measure latency: on the counter that both ends share, or by messages that the server sends back [default: one-way on one host, else echo]
    #[arg(long, value_parser = PossibleValuesParser::new(LatencyKind::ALL.iter().map(|of| of.word())))]
    pub latency: Option<String>,
    #[command(flatten)]
    pub ends: EndArgs,
    /// End the run when the server does not report a round within this time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
    /// Percentile of sfnt-stream's column %ile
    #[arg(long, value_name = "PERCENT", default_value_t = 99.0, value_parser = percentile)]
    pub percentile: f64,
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
    /// Print tables on stdout, or JSON, or the columns of sfnt-stream 1.2.0 to 1.6.0, with latency from when a message was due (theirs: was sent)
    #[arg(long, default_value = "text", value_parser = word([Form::TEXT, Form::SFNT, Form::JSON]))]
    pub format: Form,
    /// Print JSON on stdout, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    #[command(flatten)]
    pub files: FileArgs,
}

impl StreamClientArgs {
    /// Returns the rates and how to measure them. A search has one rate, at which it starts.
    pub fn stream(&self) -> anyhow::Result<StreamOptions> {
        let rates_per_s: Vec<f64> = match &self.rates {
            Some(list) => {
                // Lists of rates have the grammar of lists of sizes; its errors speak of sizes.
                let wrong = |_| {
                    anyhow::anyhow!(
                        "--rates: \"{list}\" is not a list of rates\nhint: write one such as 10000,20000 or 10000-50000+10000"
                    )
                };
                parse_sizes(list).map_err(wrong)?.into_iter().map(f64::from).collect()
            }
            None => vec![f64::from(self.sweep)],
        };
        let is_possible = |rate: &f64| (1.0..=RATE_MAX_PER_S).contains(rate);
        if let Some(rate) = rates_per_s.iter().find(|rate| !is_possible(rate)) {
            anyhow::bail!(
                "cannot send {rate} messages/s\nhint: choose rates from 1 to {RATE_MAX_PER_S} messages/s"
            );
        }
        Ok(StreamOptions {
            rates_per_s,
            is_sweep: self.rates.is_none(),
            rounds: self.rounds,
            time_ms: ms(self.duration).max(1),
            p99_ns_max: self.p99,
            latency: self.latency.as_deref().and_then(LatencyKind::of_word),
        })
    }

    /// The scenario of the messages, without CPUs that the user did not name.
    pub fn scenario(&self, stream: &StreamOptions) -> anyhow::Result<Scenario> {
        let size_min = u32::try_from(HEADER_BYTES).unwrap_or(u32::MAX);
        anyhow::ensure!(
            self.size >= size_min,
            "cannot send messages of {} bytes: their header takes {size_min}\nhint: choose a --size of at least {size_min}",
            self.size
        );
        // The server keeps a bit for each message of a round.
        let most = if stream.is_sweep {
            RATE_MAX_PER_S
        } else {
            stream.rates_per_s.iter().copied().fold(1.0, f64::max)
        };
        let messages = most * stream.time_ms as f64 / 1_000.0;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates, as intended"
        )]
        let iterations_max = (messages as u64).clamp(1_000, Scenario::ITERATIONS_MAX);
        Ok(self.ends.of(Scenario {
            // The parser accepts no other words.
            transport: Transport::of_word(&self.transport).unwrap_or(Transport::Udp),
            sizes: vec![self.size],
            iterations_min: 1,
            iterations_max,
            time_ms_max: stream.time_ms,
            timeout_ms: ms(self.timeout),
            ..Scenario::default()
        }))
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
