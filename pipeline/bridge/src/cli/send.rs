//! `lowlat-bridge send`.

use super::{CarrierArguments, Run, WaitArgument, hop, interrupted, is_set};
use clap::Args;
use lowlat_bridge::{
    Carrier,
    aeron::{Link, Publication},
    sender::{Counts, Options, Sender, Turn},
};
use lowlat_node::clock::now_ns;
use serde_json::json;
use std::{thread, time::Duration};

/// Longest time between two checks for Ctrl-C.
const LOOK_NS: u64 = 100_000_000;
/// Longest wait for a receiver at the start.
const CONNECT_NS_MAX: u64 = 2_000_000_000;

/// Join the run as a node and send every record of the streams with Aeron. Prints its counts at the end.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: lowlat-bridge send --run main --driver /dev/shm/aeron-md --channel 'aeron:udp?endpoint=10.0.0.2:40123' --streams md"
)]
pub struct SendArgs {
    #[command(flatten)]
    run: Run,
    #[command(flatten)]
    way: CarrierArguments,
    /// Streams to send: names, or a prefix and a star
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required = true)]
    streams: Vec<String>,
    /// Name of its node; restarted under it, it continues where it ended
    #[arg(long, default_value = "bridge")]
    name: String,
    /// How to wait for records
    #[arg(long, value_enum, default_value_t)]
    wait: WaitArgument,
    /// How long to retry a record while there is no room before it is dropped, us
    #[arg(long, value_name = "US", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    patience_us: u64,
}

pub fn run(arguments: &SendArgs) -> anyhow::Result<()> {
    let is_over = interrupted()?;
    let CarrierArguments { driver, channel, stream_id } = &arguments.way;
    let publication = Publication::add(Link::open(driver)?, channel, *stream_id)?;
    // Before it joins: until then the predecessor's ring keeps the records.
    let until_ns = now_ns() + CONNECT_NS_MAX;
    while !publication.is_connected() && now_ns() < until_ns && !is_set(&is_over) {
        thread::sleep(Duration::from_millis(1));
    }
    let options = Options {
        name: arguments.name.clone(),
        streams: arguments.streams.clone(),
        wait: arguments.wait.into(),
        patience_ns: arguments.patience_us * 1000,
    };
    let mut sender = Sender::join(&arguments.run.socket()?, &options, publication)?;
    eprintln!("sender {} of the run started at {} ns", sender.epoch(), sender.run());
    let mut told = LossReport::default();
    let done = loop {
        if is_set(&is_over) {
            break Ok(());
        }
        match sender.turn(now_ns() + LOOK_NS) {
            Ok(Turn::GoOn) => told.tell(&sender),
            Ok(Turn::Stop) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let Counts { sent, lost, back_pressure, not_connected, too_long, old } = sender.counts();
    let result = json!({
        "run": sender.run(), "epoch": sender.epoch(), "sent": sent, "lost": lost, "back_pressure": back_pressure,
        "not_connected": not_connected, "too_long": too_long, "old": old, "hop": hop(&sender.hop()),
    });
    println!("{result}");
    Ok(done?)
}

/// State of the reports on stderr. Losses are printed once a second, not one by one.
#[derive(Debug, Default)]
struct LossReport {
    is_connected: bool,
    counts: Counts,
    due_ns: u64,
}

impl LossReport {
    fn tell(&mut self, sender: &Sender<Publication>) {
        let is_connected = sender.is_connected();
        if is_connected != std::mem::replace(&mut self.is_connected, is_connected) {
            eprintln!("{}", if is_connected { "connected" } else { "no receiver is connected" });
        }
        let now = now_ns();
        if now < self.due_ns {
            return;
        }
        self.due_ns = now + 1_000_000_000;
        let counts = sender.counts();
        let before = std::mem::replace(&mut self.counts, counts);
        let reasons = [
            (counts.lost - before.lost, "never reached this sender: it was away, or too slow"),
            (
                counts.back_pressure - before.back_pressure,
                "dropped: no room, because the receiver or the network is too slow",
            ),
            (counts.not_connected - before.not_connected, "dropped: no receiver"),
            (
                counts.too_long - before.too_long,
                "dropped: longer than a message of this channel; use longer terms",
            ),
        ];
        for (count, words) in reasons.iter().filter(|(count, _)| *count > 0) {
            eprintln!("{count} records {words}");
        }
    }
}
