//! `lowlat-bridge receive`.

use super::{CarrierArguments, Run, WaitArgument, hop, interrupted, is_set};
use clap::Args;
use lowlat_bridge::{
    aeron::{Link, Subscription},
    receiver::{BridgedStreamOptions, Counts, Options, Receiver},
};
use serde_json::json;
use std::{str::FromStr, thread, time::Duration};

/// Sleeps of an idle parked receiver: from the first to the second, doubling each time.
const SLEEPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));

/// Publish streams of another host in this host's run. Prints its counts at the end.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: lowlat-bridge receive --run main --driver /dev/shm/aeron-md --channel 'aeron:udp?endpoint=10.0.0.2:40123' --stream md:1024"
)]
pub struct ReceiveArgs {
    #[command(flatten)]
    run: Run,
    #[command(flatten)]
    way: CarrierArguments,
    /// Stream to publish, its number of instruments, and bytes of its ring; may be repeated
    #[arg(long = "stream", value_name = "NAME:KEYS[:BYTES]", required = true)]
    streams: Vec<StreamArgument>,
    /// Prefix of its nodes' names
    #[arg(long, default_value = "bridge")]
    name: String,
    /// How to wait for records
    #[arg(long, value_enum, default_value_t)]
    wait: WaitArgument,
    /// Do not publish notices of losses in the streams
    #[arg(long)]
    no_marks: bool,
}

/// Parsed value of a `--stream` option.
#[derive(Debug, Clone)]
struct StreamArgument(BridgedStreamOptions);

impl FromStr for StreamArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: expected NAME:KEYS or NAME:KEYS:BYTES, such as md:1024");
        let mut parts = text.split(':');
        let stream = parts.next().unwrap_or_default().to_owned();
        let keys = parts.next().and_then(|keys| keys.parse().ok()).ok_or_else(wrong)?;
        let capacity_bytes =
            parts.next().map_or(Ok(1 << 24), |bytes| bytes.parse::<u64>().map_err(|_| wrong()))?;
        if parts.next().is_some() || stream.is_empty() {
            return Err(wrong());
        }
        Ok(Self(BridgedStreamOptions { stream, keys, capacity_bytes }))
    }
}

pub fn run(arguments: &ReceiveArgs) -> anyhow::Result<()> {
    let is_over = interrupted()?;
    let CarrierArguments { driver, channel, stream_id } = &arguments.way;
    let options = Options {
        name: arguments.name.clone(),
        streams: arguments.streams.iter().map(|asked| asked.0.clone()).collect(),
        wait: arguments.wait.into(),
        has_marks: !arguments.no_marks,
    };
    let mut receiver = Receiver::join(&arguments.run.socket()?, &options)?;
    while !receiver.has_begun() && !receiver.is_over() && !is_set(&is_over) {
        receiver.hear()?;
        thread::sleep(SLEEPS.1);
    }
    // Only now: records from before the begin would wait here, and block their sender.
    let mut subscription = Subscription::add(Link::open(driver)?, channel, *stream_id)?;
    eprintln!("subscribed");
    let done = follow(&mut receiver, &mut subscription, arguments.wait, || is_set(&is_over));
    let Counts { published, lost, void, duplicates, fenced, not_ours, refused, unfit, unrouted, marks } =
        receiver.counts();
    let result = json!({
        "published": published, "lost": lost, "void": void, "duplicates": duplicates, "fenced": fenced,
        "not_ours": not_ours, "refused": refused, "unfit": unfit, "unrouted": unrouted, "marks": marks,
        "hop": hop(&receiver.hop()),
    });
    println!("{result}");
    done
}

fn follow(
    receiver: &mut Receiver,
    subscription: &mut Subscription,
    wait: WaitArgument,
    is_over: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let mut is_connected = false;
    let mut sleep = SLEEPS.0;
    while !receiver.is_over() && !is_over() {
        receiver.hear()?;
        if subscription.is_connected() != is_connected {
            is_connected = !is_connected;
            eprintln!("{}", if is_connected { "connected" } else { "no sender is connected" });
        }
        if subscription.poll(receiver, &mut |says| eprintln!("{says}"))? > 0 {
            sleep = SLEEPS.0;
        } else if wait == WaitArgument::Fast {
            lowlat_ipc::relax();
        } else {
            thread::sleep(sleep);
            sleep = (sleep * 2).min(SLEEPS.1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_with_their_instruments() {
        let asked = |text: &str| text.parse::<StreamArgument>().map(|asked| asked.0);
        let stream =
            |keys, capacity_bytes| BridgedStreamOptions { stream: "md".to_owned(), keys, capacity_bytes };
        assert_eq!(asked("md:80"), Ok(stream(80, 1 << 24)));
        assert_eq!(asked("md:80:65536"), Ok(stream(80, 65536)));
        for wrong in ["", "md", ":80", "md:", "md:x", "md:80:", "md:80:1:2", "md:-1"] {
            assert!(asked(wrong).unwrap_err().contains("such as md:1024"), "{wrong}");
        }
    }
}
