//! Ping and pong.

use super::{
    End,
    channel::Channel,
    ends::{Content, Transport},
};
use crate::ipc::trial::clock::now_ns;
use hdrhistogram::Histogram;
use lowlat_pipeline::StageFigures;

/// The number that ends a run.
const LAST: u64 = u64::MAX;

/// Number of round trips in a run.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Round trips that are measured.
    pub trips: u64,
    /// Round trips before, which are not.
    pub warm_up: u64,
    /// Round trips between two reads of the clock.
    pub batch: u64,
}

/// Runs one side. The one that pings prints its figures as JSON: nanoseconds one way, each the mean of a batch.
pub fn run<T: Transport>(mut transport: T, channel: &Channel, load: &Load) -> anyhow::Result<()> {
    channel.meet(10);
    match channel.end {
        End::Echo => echo(&mut transport)?,
        End::Ping => {
            let figures = ping(&mut transport, load)?;
            println!("{}", serde_json::to_string(&figures)?);
        }
    }
    // Neither side frees what the other still uses.
    channel.meet(11);
    Ok(())
}

fn echo<T: Transport>(transport: &mut T) -> anyhow::Result<()> {
    let mut message = T::Message::of(0);
    loop {
        transport.receive(&mut message)?;
        transport.send(&message)?;
        if message.is_of(LAST) {
            return Ok(());
        }
    }
}

fn ping<T: Transport>(transport: &mut T, load: &Load) -> anyhow::Result<StageFigures> {
    let mut histogram = Histogram::<u64>::new(3)?;
    for number in 1..=load.warm_up {
        trip(transport, number)?;
    }
    let mut number = load.warm_up;
    for _ in 0..load.trips / load.batch {
        let start = now_ns();
        for _ in 0..load.batch {
            number += 1;
            trip(transport, number)?;
        }
        // A trip goes there and back.
        histogram.record((now_ns() - start) / (2 * load.batch))?;
    }
    trip(transport, LAST)?;
    Ok(StageFigures::of(&histogram))
}

fn trip<T: Transport>(transport: &mut T, number: u64) -> anyhow::Result<()> {
    let message = T::Message::of(number);
    transport.send(&message)?;
    let mut answer = T::Message::of(0);
    transport.receive(&mut answer)?;
    anyhow::ensure!(answer.is_of(number), "sent {message:?}, and {answer:?} came back");
    Ok(())
}
