//! Things with one name, told apart by numbers that change with each boot: interrupts, kernel threads.

use lowlat_plan::Plan;
use lowlat_settings::change::{Change, Target};

/// A change of one of them.
#[derive(Clone, Copy)]
pub(super) struct Numbered {
    pub(super) change: usize,
    pub(super) number: u32,
}

/// The changes whose targets `number_of` numbers, in the order of their numbers.
pub(super) fn numbered(plan: &Plan, number_of: impl Fn(&Target) -> Option<u32>) -> Vec<Numbered> {
    let of =
        |(change, planned): (usize, &Change)| Some(Numbered { change, number: number_of(&planned.target)? });
    let mut all: Vec<Numbered> = plan.changes.iter().enumerate().filter_map(of).collect();
    all.sort_by_key(|wanted| wanted.number);
    all
}

/// Each change with the thing of its number; then the changes and the things that are left, in their order.
pub(super) struct Paired<T> {
    pub(super) pairs: Vec<(Numbered, T)>,
    pub(super) renumbered: Vec<Numbered>,
    pub(super) others: std::vec::IntoIter<T>,
}

pub(super) fn paired<T>(all: &[Numbered], mut things: Vec<T>, number_of: impl Fn(&T) -> u32) -> Paired<T> {
    let (mut pairs, mut renumbered) = (Vec::new(), Vec::new());
    for wanted in all {
        match things.iter().position(|thing| number_of(thing) == wanted.number) {
            Some(at) => pairs.push((*wanted, things.remove(at))),
            None => renumbered.push(*wanted),
        }
    }
    Paired { pairs, renumbered, others: things.into_iter() }
}
