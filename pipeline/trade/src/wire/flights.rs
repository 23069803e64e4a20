//! Orders at the exchange.

use crate::td::ReadOrder;

/// Most orders in flight: accepted and not filled, or not yet answered.
const FLIGHTS_MAX: usize = 1 << 14;

/// An order at the exchange, or a request to change one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flight {
    /// The order as td read it.
    pub(crate) taken: ReadOrder,
    /// When td had read it, ns.
    pub(crate) read_ns: u64,
    /// The exchange has accepted it.
    pub(crate) is_accepted: bool,
    /// Quantity that is not filled.
    pub(crate) left: u32,
    /// The order that it changes, by its number on the connection; 0: it is a new one.
    pub(crate) changes: u64,
    /// A request that a halt makes, or an order that it has asked to cancel.
    pub(crate) is_halted: bool,
}

impl Flight {
    /// Quantity of an order that is filled.
    pub(crate) fn filled(&self) -> u32 {
        self.taken.order.quantity.saturating_sub(self.left)
    }
}

/// Orders in flight by their number on the connection. Allocates only when it is made.
#[derive(Debug)]
pub(crate) struct Flights {
    places: Box<[Option<Flight>]>,
    next: u64,
    count: usize,
}

impl Flights {
    pub(crate) fn new() -> Self {
        Self { places: vec![None; FLIGHTS_MAX].into(), next: 1, count: 0 }
    }

    /// Number of orders in flight.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The number of the next order; `None` if no place is free for it.
    pub(crate) fn next(&self) -> Option<u64> {
        self.places.get(place(self.next))?.is_none().then_some(self.next)
    }

    pub(crate) fn push(&mut self, flight: Flight) {
        if let Some(place) = self.places.get_mut(place(self.next)) {
            *place = Some(flight);
            self.next += 1;
            self.count += 1;
        }
    }

    /// An order by its number.
    pub(crate) fn get(&mut self, id: u64) -> Option<&mut Flight> {
        // Numbers of a place recur; only the latest ones are in flight.
        let is_known = id < self.next && self.next - id <= FLIGHTS_MAX as u64;
        self.places.get_mut(place(id)).filter(|_| is_known)?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Flight> {
        self.get(id)?;
        let taken = self.places.get_mut(place(id))?.take();
        self.count -= usize::from(taken.is_some());
        taken
    }

    /// Removes any order, for a connection that is lost.
    pub(crate) fn pop(&mut self) -> Option<Flight> {
        if self.count == 0 {
            return None;
        }
        self.count -= 1;
        self.places.iter_mut().find_map(Option::take)
    }

    /// The latest order of a strategy with its own number, and its number on the connection.
    pub(crate) fn find(&self, strategy: u32, number: u64) -> Option<(u64, Flight)> {
        let mut orders = self.from(1).rev().filter(|(_, flight)| flight.changes == 0);
        let is_it = |taken: &ReadOrder| (taken.stamp.source, taken.order.number) == (strategy, number);
        orders.find(|(_, flight)| is_it(&flight.taken)).map(|(id, flight)| (id, *flight))
    }

    /// Those from this number on, oldest first.
    fn from(&self, first: u64) -> impl DoubleEndedIterator<Item = (u64, &Flight)> {
        let oldest = self.next.saturating_sub(FLIGHTS_MAX as u64).max(first).max(1);
        let open = if self.count == 0 { 0..0 } else { oldest..self.next };
        open.filter_map(|id| Some((id, self.places.get(place(id))?.as_ref()?)))
    }

    /// The next accepted order that a halt has not asked to cancel, by its number on the connection, from `first` on.
    pub(crate) fn to_halt(&self, first: u64, is_halted: impl Fn(u32) -> bool) -> Option<(u64, Flight)> {
        let is_due =
            |flight: &Flight| flight.is_accepted && !flight.is_halted && is_halted(flight.taken.stamp.source);
        self.from(first).find(|(_, flight)| is_due(flight)).map(|(id, flight)| (id, *flight))
    }

    /// Number of unanswered orders of a strategy, and its position in an instrument if all of its orders in flight are
    /// filled.
    pub(crate) fn exposure(&self, strategy: u32, instrument: u32) -> (u64, i64) {
        let flights = self.from(1).map(|(_, flight)| flight);
        let its = flights.filter(|flight| flight.changes == 0 && flight.taken.stamp.source == strategy);
        its.fold((0, 0), |(count, sum), flight| {
            let signed = flight.taken.order.side.signed(flight.left);
            let is_same = flight.taken.stamp.instrument == instrument;
            (count + u64::from(!flight.is_accepted), sum + if is_same { signed } else { 0 })
        })
    }
}

fn place(id: u64) -> usize {
    usize::try_from(id % FLIGHTS_MAX as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_ipc::stream::Stamp;
    use lowlat_node::records::{Order, Side, kind};

    fn flight(strategy: u32, side: Side, quantity: u32) -> Flight {
        let stamp = Stamp {
            kind: kind::ORDER,
            schema: 1,
            instrument: 3,
            source: strategy,
            generated: 0,
            trigger: 0,
            cause: 0,
        };
        let order = Order { quantity, side, ..Order::default() };
        let taken = ReadOrder { writer: 0, sequence: 0, stamp, order };
        Flight { taken, read_ns: 0, is_accepted: false, left: quantity, changes: 0, is_halted: false }
    }

    #[test]
    fn orders_are_found_by_number_until_they_are_removed() {
        let mut flights = Flights::new();
        for id in 1..=FLIGHTS_MAX as u64 {
            assert_eq!(flights.next(), Some(id));
            flights.push(flight(u32::try_from(id % 2).unwrap(), Side::Buy, 2));
        }
        assert_eq!((flights.next(), flights.count()), (None, FLIGHTS_MAX));
        flights.get(2).unwrap().is_accepted = true;
        assert_eq!(flights.exposure(0, 3), (FLIGHTS_MAX as u64 / 2 - 1, 1 << 14));
        assert_eq!(flights.exposure(0, 4).1, 0);
        assert!(flights.remove(1).is_some() && flights.remove(1).is_none());
        assert!(flights.get(0).is_none() && flights.get(1 << 40).is_none());
        let next = flights.next().unwrap();
        flights.push(flight(5, Side::Sell, 7));
        assert_eq!(flights.exposure(5, 3), (1, -7));
        assert_eq!(flights.find(5, 0).map(|(id, _)| id), Some(next));
        assert_eq!(flights.find(6, 0), None);
        assert!(flights.get(1).is_none(), "its place has another order");
        assert_eq!(flights.remove(next).unwrap().left, 7);
        while flights.pop().is_some() {}
        assert_eq!(flights.count(), 0);
    }
}
