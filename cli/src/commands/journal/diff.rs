//! `lowlat journal diff`.

use super::show;
use crate::{exit::Exit, output};
use clap::Args;
use lowlat_journal::{
    diff::{Difference, Item, Key, diff},
    export::decimal,
    read::{JournalRead, Merge, Recording},
};
use lowlat_node::records::{Order, OrderAction, SCHEMA, kind};
use lowlat_pipeline_report::journal_diff_text;
use serde::Serialize;
use std::{cell::RefCell, collections::HashMap, path::PathBuf};

#[derive(Debug, Args)]
pub struct Diff {
    /// Directory of the first recording
    #[arg(value_name = "LEFT")]
    left: PathBuf,
    /// Directory of the second recording
    #[arg(value_name = "RIGHT")]
    right: PathBuf,
    /// Streams that contain orders: a name, or a prefix
    #[arg(long, value_name = "NAME", default_value = "orders.*")]
    stream: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Largest number of damaged places and gaps listed per side.
const NAMED_MAX: usize = 10;

/// Missing and damaged records of one recording.
#[derive(Debug, Clone, Default, Serialize)]
struct Side {
    lost: u64,
    /// Lost records that were published while no recorder ran, or deleted with the oldest files.
    missed: u64,
    damages: u64,
    undecoded: u64,
    /// Descriptions of the first damaged places and gaps.
    named: Vec<String>,
}

impl Side {
    fn is_complete(&self) -> bool {
        self.damages == 0 && self.lost == self.missed && self.undecoded == 0
    }

    fn name(&mut self, words: impl FnOnce() -> String) {
        if self.named.len() < NAMED_MAX {
            self.named.push(words());
        }
    }
}

pub fn run(arguments: &Diff) -> anyhow::Result<Exit> {
    let (left, right) = (Recording::open(&arguments.left)?, Recording::open(&arguments.right)?);
    let sides = [RefCell::new(Side::default()), RefCell::new(Side::default())];
    let difference =
        diff(orders(&left, &arguments.stream, &sides[0])?, orders(&right, &arguments.stream, &sides[1])?);
    let sides = sides.map(RefCell::into_inner);
    let found = serde_json::json!({ "difference": difference, "left": sides[0], "right": sides[1] });
    let names = [&arguments.left, &arguments.right].map(|folder| folder.display().to_string());
    output::print_as(arguments.json, &output::Document::of("lowlat-journal-diff", found), |width| {
        journal_diff_text(&difference, &names, &notes(&difference, &sides), width)
    })?;
    for recording in [&left, &right] {
        show::talk_if_live(recording);
    }
    let is_clean = difference.is_empty() && sides.iter().all(Side::is_complete);
    Ok(if is_clean { Exit::Clean } else { Exit::Findings })
}

/// The orders of a run, by time.
fn orders<'r>(
    recording: &'r Recording,
    pattern: &str,
    side: &'r RefCell<Side>,
) -> anyhow::Result<impl Iterator<Item = Item> + use<'r>> {
    let mut merge = Merge::new(recording, &recording.choose(&[pattern])?);
    let (mut bytes, mut changes) = (Vec::new(), HashMap::new());
    Ok(std::iter::from_fn(move || {
        loop {
            let mut side = side.borrow_mut();
            match merge.next(&mut bytes) {
                JournalRead::Record(record) => {
                    let stamp = &record.record.stamp;
                    if stamp.kind != kind::ORDER {
                        continue;
                    }
                    let order = Some(stamp.schema).filter(|schema| *schema == SCHEMA);
                    let Some(order) = order.and_then(|_| Order::decode(&bytes).ok()) else {
                        side.undecoded += 1;
                        continue;
                    };
                    let change: &mut u64 = changes.entry((record.stream, order.number)).or_default();
                    *change += u64::from(order.action != OrderAction::New);
                    return Some(Item {
                        key: Key {
                            source: show::name(recording.streams(), record.stream),
                            number: order.number,
                            instrument: stamp.instrument,
                            change: if order.action == OrderAction::New { 0 } else { *change },
                        },
                        fields: vec![
                            ("side", order.side.word().to_owned()),
                            ("price", decimal(order.price)),
                            ("quantity", order.quantity.to_string()),
                            ("action", order.action.word().to_owned()),
                            ("order_type", order.order_type.word().to_owned()),
                            ("cause_sequence", stamp.cause.to_string()),
                        ],
                        latency_ns: stamp.generated.checked_sub(stamp.trigger),
                    });
                }
                JournalRead::Gap(gap) => {
                    side.lost = side.lost.saturating_add(gap.count());
                    if !gap.is_loss() {
                        side.missed = side.missed.saturating_add(gap.count());
                    }
                    side.name(|| show::gap(recording.streams(), &gap));
                }
                JournalRead::Damaged(damage) => {
                    side.damages += 1;
                    side.name(|| show::damage(recording.streams(), &damage));
                }
                JournalRead::Nothing | JournalRead::Ended => return None,
            }
        }
    }))
}

/// Sentences on limits of the comparison.
fn notes(difference: &Difference, sides: &[Side; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, side) in ["left", "right"].into_iter().zip(sides) {
        let told = [
            (side.lost, "record is missing", "records are missing"),
            (side.damages, "place is damaged", "places are damaged"),
            (side.undecoded, "order could not be decoded", "orders could not be decoded"),
        ];
        let words = told.into_iter().filter(|(count, ..)| *count > 0);
        let words =
            words.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
        let words: Vec<_> = words.collect();
        if !words.is_empty() {
            notes.push(format!("{name}: {}", words.join(", ")));
        }
        notes.extend(side.named.iter().map(|named| format!("{name}: {named}")));
    }
    if difference.twice_count > 0 {
        notes.push(format!("{} orders occur twice; only the first is compared", difference.twice_count));
    }
    notes
}
