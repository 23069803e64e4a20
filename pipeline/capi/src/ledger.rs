//! td's ledger: open orders and positions of the node's strategy.

use crate::{
    error::{Status, fail, null},
    node::{Node, with},
    records::side_code,
};
use lowlat_node::{
    Memory,
    ledger::{self, Ledger, LedgerBusy},
};

/// An order that is accepted and neither filled nor cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct OpenOrder {
    /// The strategy's number of it.
    pub number: u64,
    /// Limit price in LOWLAT_PRICE_SCALE-ths.
    pub price: i64,
    /// The whole quantity, with what is filled.
    pub quantity: u32,
    /// The part of it that is filled.
    pub filled: u32,
    /// The instrument.
    pub instrument: u32,
    /// LOWLAT_SIDE_...
    pub side: u32,
}

/// The position of a strategy in an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Position {
    /// The instrument.
    pub instrument: u32,
    /// 0.
    pub reserved: u32,
    /// Positive if bought, negative if sold.
    pub quantity: i64,
}

/// Copies the open orders of the node's strategy into an array, by number, also those of its earlier processes. Sets
/// `count` to their number. If that is above `capacity`, the first ones are copied and the status is
/// LOWLAT_STATUS_TOO_MANY; `orders` may be NULL if `capacity` is 0. td enters a request after it has published its
/// answers, so an answer may be read first. Not for the hot path: it reads a table of all strategies. A handler may call
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_open_orders(
    node: *const Node,
    orders: *mut OpenOrder,
    capacity: usize,
    count: *mut usize,
) -> Status {
    let of = |order: ledger::OpenOrder| {
        let ledger::OpenOrder { number, price, quantity, filled, instrument, side, .. } = order;
        OpenOrder { number, price, quantity, filled, instrument, side: side_code(side) }
    };
    let read = |ledger: &Ledger<Memory>, strategy| ledger.open_orders(strategy);
    // SAFETY: the caller guarantees a node or NULL, space for `capacity` orders or NULL, and space for a number or NULL.
    unsafe { copy(node, ("lowlat_open_orders", "orders"), read, of, (orders, capacity, count)) }
}

/// Copies the positions of the node's strategy that are not 0 into an array, by instrument. Otherwise like
/// lowlat_open_orders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_positions(
    node: *const Node,
    positions: *mut Position,
    capacity: usize,
    count: *mut usize,
) -> Status {
    let of = |(instrument, quantity)| Position { instrument, reserved: 0, quantity };
    let read = |ledger: &Ledger<Memory>, strategy| ledger.positions(strategy);
    // SAFETY: the caller guarantees a node or NULL, space for `capacity` positions or NULL, and space for a number or
    // NULL.
    unsafe { copy(node, ("lowlat_positions", "positions"), read, of, (positions, capacity, count)) }
}

/// Copies what a function reads in the ledger; `what` is the function that was called, and the name of its array.
///
/// # Safety
/// The node is NULL or was not released. The array is NULL, or has space for this many and is not used by others during
/// the call. The last pointer is NULL, or has space for a number.
unsafe fn copy<F, T>(
    node: *const Node,
    what: (&str, &str),
    read: impl FnOnce(&Ledger<Memory>, u32) -> Result<Vec<F>, LedgerBusy>,
    of: impl Fn(F) -> T,
    (into, capacity, count): (*mut T, usize, *mut usize),
) -> Status {
    let (function, array) = what;
    let copy = |node: &Node| {
        if into.is_null() && capacity > 0 {
            return Err(null(array));
        }
        // SAFETY: NULL, or space for a number, as the caller guarantees.
        let count = unsafe { count.as_mut() }.ok_or_else(|| null("count"))?;
        let found = node.look(function, read)?;
        *count = found.len();
        for (at, value) in found.into_iter().take(capacity).enumerate() {
            // SAFETY: not NULL, because there is a capacity. `at` is below it, and the caller guarantees aligned space
            // for that many. Nothing is dropped, because they are plain data.
            unsafe { into.add(at).write(of(value)) };
        }
        if *count > capacity {
            let text = format_args!(
                "cannot copy {count} {array}: the array has space for {capacity}\nhint: call {function} again with a larger array"
            );
            return Err(fail(Status::TooMany, &text));
        }
        Ok(())
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, copy) }
}
