//! Processes of the model.

use super::{
    Journals,
    journal::{Frame, Reader, Writer},
    notice::{Master, Notice},
};
use crate::ipc::trial::{
    Scene,
    board::{Count, Phase},
    clock::{now_ns, wait_until},
    memory::Part,
    message::Words,
    post::Post,
    samples::Times,
};
use anyhow::{Context, ensure};
use std::{sync::mpsc, thread};

/// Words of payloads. An order's are those of its quote, and when that was received.
const SCHEDULED: usize = 0;
const INSTRUMENT: usize = 1;
const RECEIVED: usize = 2;

fn word(payload: &Words, at: usize) -> u64 {
    payload.get(at).copied().unwrap_or(0)
}

/// Passes each notice on to all processes.
pub fn master(post: &mut Post, master: &Master<'_>) -> anyhow::Result<()> {
    let board = post.board.clone();
    // Connecting needs master's answers, so it is ready before the others are.
    post.say_ready();
    master.assemble(|| board.phase() == Phase::Assembling)?;
    post.begin()?;
    while !post.is_over() {
        master.pass()?;
    }
    post.report()
}

/// Wakes for each notice, as every process does. (Kungfu's writes what it finds to a database; this one only checks.)
pub fn cached(post: &mut Post, notice: &Notice<'_>, quotes: Part) -> anyhow::Result<()> {
    post.begin()?;
    let mut reader = Reader::new(vec![quotes]);
    while !post.is_over() {
        // In fast mode it would spin; see `Master::pass`.
        if post.is_spinning {
            thread::sleep(std::time::Duration::from_millis(100));
        } else {
            notice.wait()?;
        }
        while reader.next().is_some() {}
    }
    post.report()
}

/// Publishes quotes. Parked, the feed runs in a separate thread next to the loop that is woken by notices, as it does
/// with a market's library; in fast mode one loop does both.
pub fn md(post: &mut Post, notice: &Notice<'_>, scene: &Scene, quotes: Part) -> anyhow::Result<()> {
    let start_ns = post.begin()?;
    let mut writer = Writer::new(quotes);
    let post = &*post;
    if post.is_spinning {
        feed(post, notice, scene, &mut writer, start_ns)?;
        while !post.is_over() {
            notice.wait()?;
        }
        return post.report();
    }
    thread::scope(|scope| {
        let (done, reported) = mpsc::channel::<()>();
        let feeding = scope.spawn(move || {
            let fed = feed(post, notice, scene, &mut writer, start_ns);
            // The thread stays until its usage was reported: this returns once the other side is dropped.
            let _ = reported.recv();
            fed
        });
        while !post.is_over() && !feeding.is_finished() {
            notice.wait()?;
        }
        post.report()?;
        drop(done);
        feeding.join().map_err(|_| anyhow::anyhow!("the feed's thread ended"))?
    })
}

fn feed(
    post: &Post,
    notice: &Notice<'_>,
    scene: &Scene,
    writer: &mut Writer,
    start_ns: u64,
) -> anyhow::Result<()> {
    for tick in 0..scene.load.ticks {
        let scheduled = start_ns + scene.load.due_ns(tick);
        let is_over = || {
            if post.is_spinning {
                // The loop of fast mode checks for notices in every turn.
                let _ = notice.wait();
            }
            post.is_over()
        };
        if !wait_until(scheduled, post.is_spinning, is_over) {
            break;
        }
        let mut payload = Words::default();
        payload[SCHEDULED] = scheduled;
        payload[INSTRUMENT] = u64::from(scene.load.instrument(tick));
        let now = now_ns();
        ensure!(writer.write(now, now, &payload), "the journal of quotes is full");
        notice.notify()?;
        post.count(Count::Published, tick + 1);
    }
    Ok(())
}

/// Reads every quote and answers those of its instrument with an order.
pub fn strategy(
    post: &mut Post,
    notice: &Notice<'_>,
    number: u32,
    journals: &Journals<'_>,
) -> anyhow::Result<()> {
    const QUOTES: usize = 0;
    let mut writer = Writer::new(journals.orders(number)?);
    let mut reader = Reader::new(vec![journals.quotes(), journals.answers(number)?]);
    let mut answers = 0;
    post.begin()?;
    while !post.is_over() {
        notice.wait()?;
        while reader.has_data() {
            let Some(Frame { journal, generated, mut payload, .. }) = reader.next() else { break };
            if journal != QUOTES {
                answers += 1;
                post.count_answers(answers);
            } else if word(&payload, INSTRUMENT) == u64::from(number) {
                payload[RECEIVED] = now_ns();
                ensure!(writer.write(now_ns(), generated, &payload), "the journal of orders is full");
                notice.notify()?;
            }
        }
    }
    post.report()
}

/// Reads the orders of all strategies and answers each.
pub fn td(
    post: &mut Post,
    notice: &Notice<'_>,
    scene: &Scene,
    journals: &Journals<'_>,
) -> anyhow::Result<()> {
    let strategies = 0..scene.load.strategies;
    let orders = strategies.clone().map(|number| journals.orders(number)).collect::<Result<_, _>>()?;
    let mut writers = strategies
        .map(|number| journals.answers(number).map(Writer::new))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut reader = Reader::new(orders);
    let mut samples = scene.samples();
    let mut count = 0;
    post.begin()?;
    while !post.is_over() {
        notice.wait()?;
        while reader.has_data() {
            let Some(order) = reader.next() else { break };
            let taken = now_ns();
            samples.push(&Times {
                scheduled: word(&order.payload, SCHEDULED),
                quoted: order.trigger,
                received: word(&order.payload, RECEIVED),
                ordered: order.generated,
                taken,
            });
            let writer = writers.get_mut(order.journal).context("an order of no strategy")?;
            ensure!(
                writer.write(now_ns(), order.generated, &order.payload),
                "the journal of answers is full"
            );
            notice.notify()?;
            count += 1;
            post.count(Count::Orders, count);
            post.count(Count::Answers, count);
        }
    }
    post.report()
}
