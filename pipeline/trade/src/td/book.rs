//! The simulated book: what the run's quotes let an order trade, and the open orders by instrument.

use lowlat_ipc::region::Region;
use lowlat_node::{
    ledger::{Ledger, OPEN_MAX, OpenOrder},
    records::{Order, OrderType, Price, Quote, Side},
};

/// Parameters of the simulated book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookRules {
    /// Time from td's read of a request until it arrives at the exchange, ns.
    pub latency_ns: u64,
    /// Part of a quoted size that orders can take, in thousandths.
    pub depth_per_mille: u32,
    /// Part of a quoted size that is ahead of an order which joins its price, in thousandths.
    pub queue_per_mille: u32,
}

impl Default for BookRules {
    fn default() -> Self {
        Self { latency_ns: 0, depth_per_mille: 1000, queue_per_mille: 1000 }
    }
}

/// One side of the last quote of an instrument.
#[derive(Debug, Clone, Copy, Default)]
struct QuotedSide {
    /// 0: none.
    price: Price,
    size: u32,
    /// Quantity that orders can still take of it.
    left: u64,
    /// Quantity that others have traded at this price since the quote before, less what open orders got of it.
    traded: u64,
}

impl QuotedSide {
    fn update(&mut self, price: Price, size: u32, last: Price, rules: &BookRules) {
        let shrunk = u64::from(self.size.saturating_sub(size));
        let traded = if price != 0 && (price, last) == (self.price, price) { shrunk } else { 0 };
        let left = u64::from(size) * u64::from(rules.depth_per_mille) / 1000;
        *self = Self { price, size, left, traded };
    }
}

/// The market of an instrument, as its quotes show it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Market {
    /// Middle of the last quote with both sides; 0 before the first.
    pub(super) middle: Price,
    bid: QuotedSide,
    ask: QuotedSide,
}

impl Market {
    pub(super) fn update(&mut self, quote: &Quote, rules: &BookRules) {
        // Without both sides, the last middle stands.
        if quote.bid != 0 && quote.ask != 0 {
            self.middle = quote.bid.midpoint(quote.ask);
        }
        self.bid.update(quote.bid, quote.bid_size, quote.last, rules);
        self.ask.update(quote.ask, quote.ask_size, quote.last, rules);
    }

    fn sides(&mut self, side: Side) -> (&mut QuotedSide, &mut QuotedSide) {
        match side {
            Side::Buy => (&mut self.bid, &mut self.ask),
            Side::Sell => (&mut self.ask, &mut self.bid),
        }
    }

    /// Takes what an arriving order of this quantity gets of the other side: the quantity and its price.
    pub(super) fn take(&mut self, order: &Order, quantity: u32) -> (u32, Price) {
        let (_, other) = self.sides(order.side);
        let is_good =
            order.order_type == OrderType::Market || !is_worse(order.side, order.price, other.price);
        if other.price == 0 || !is_good {
            return (0, 0);
        }
        (take(&mut other.left, quantity), other.price)
    }

    /// Quantity ahead of an order that starts to rest at this price; `None` while another price is better.
    pub(super) fn queue(&mut self, side: Side, price: Price, rules: &BookRules) -> Option<u64> {
        let (own, _) = self.sides(side);
        if own.price == price {
            Some(u64::from(own.size) * u64::from(rules.queue_per_mille) / 1000)
        } else if own.price == 0 || is_worse(side, own.price, price) {
            Some(0)
        } else {
            None
        }
    }

    /// What a resting order gets of the last quote, and the quantity ahead of it afterwards.
    pub(super) fn fill(&mut self, order: &OpenOrder, rules: &BookRules) -> (u32, Option<u64>) {
        let queue = self.queue(order.side, order.price, rules);
        let (own, other) = self.sides(order.side);
        if other.price != 0 && !is_worse(order.side, order.price, other.price) {
            // Somebody sells where it buys, or buys where it sells.
            return (take(&mut other.left, order.left()), Some(0));
        }
        let Some(joined) = queue else { return (0, order.queue) };
        if own.price != order.price {
            return (0, Some(0));
        }
        // What is ahead of it is at most what is quoted.
        let Some(ahead) = order.queue else { return (0, Some(joined)) };
        let passed = own.traded.saturating_sub(ahead);
        let filled = take(&mut own.traded, order.left().min(u32::try_from(passed).unwrap_or(u32::MAX)));
        (filled, Some(ahead.saturating_sub(own.traded + u64::from(filled)).min(u64::from(own.size))))
    }
}

/// True if an order at this price does not reach the other.
fn is_worse(side: Side, price: Price, than: Price) -> bool {
    match side {
        Side::Buy => price < than,
        Side::Sell => price > than,
    }
}

fn take(from: &mut u64, quantity: u32) -> u32 {
    let taken = u64::from(quantity).min(*from);
    *from -= taken;
    u32::try_from(taken).unwrap_or(quantity)
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct RowLinks {
    before: u32,
    next: u32,
}

/// Rows of the ledger's open orders: a list for each instrument, in their turn, and the free ones. The orders are in the
/// ledger.
#[derive(Debug)]
pub(super) struct OpenOrders {
    /// First and last row of each instrument.
    ends: Box<[(u32, u32)]>,
    links: Box<[RowLinks]>,
    free: Vec<u32>,
}

impl OpenOrders {
    /// Those of a ledger. Instruments are below `instruments`.
    pub(super) fn of<R: Region>(ledger: &Ledger<R>, instruments: u32) -> Self {
        let rows = u32::try_from(OPEN_MAX).unwrap_or(NONE);
        let count = usize::try_from(instruments).unwrap_or(0);
        let mut orders = Self {
            ends: vec![(NONE, NONE); count].into(),
            links: vec![RowLinks { before: NONE, next: NONE }; OPEN_MAX].into(),
            free: Vec::with_capacity(OPEN_MAX),
        };
        let mut open = Vec::new();
        // The lowest row is taken first.
        for row in (0..rows).rev() {
            match Some(at(row)).filter(|row| *row < ledger.rows()).and_then(|row| ledger.open_at(row)) {
                Some(order) => open.push((order.turn, row, order.instrument)),
                None => orders.free.push(row),
            }
        }
        open.sort_unstable();
        for (_, row, instrument) in open {
            orders.push(row, instrument);
        }
        orders
    }

    /// A free row.
    pub(super) fn free_row(&self) -> Option<usize> {
        self.free.last().map(|row| at(*row))
    }

    pub(super) fn first(&self, instrument: u32) -> Option<usize> {
        let (first, _) = self.ends.get(at(instrument))?;
        (*first != NONE).then(|| at(*first))
    }

    pub(super) fn next(&self, row: usize) -> Option<usize> {
        let links = self.links.get(row)?;
        (links.next != NONE).then(|| at(links.next))
    }

    /// Rows of an instrument, in their turn.
    pub(super) fn rows(&self, instrument: u32) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.first(instrument), |row| self.next(*row))
    }

    /// Follows the change of a row.
    pub(super) fn change(&mut self, row: usize, was: Option<&OpenOrder>, is: Option<&OpenOrder>) {
        let Ok(number) = u32::try_from(row) else { return };
        match (was, is) {
            (None, Some(order)) => {
                // Almost always the last one.
                if let Some(place) = self.free.iter().rposition(|free| *free == number) {
                    self.free.swap_remove(place);
                }
                self.push(number, order.instrument);
            }
            (Some(order), None) => {
                self.unlink(number, order.instrument);
                self.free.push(number);
            }
            (Some(was), Some(is)) if was.turn != is.turn => {
                self.unlink(number, was.instrument);
                self.push(number, is.instrument);
            }
            _ => {}
        }
    }

    fn push(&mut self, row: u32, instrument: u32) {
        let Some((first, last)) = self.ends.get_mut(at(instrument)) else { return };
        let before = std::mem::replace(last, row);
        if before == NONE {
            *first = row;
        } else if let Some(links) = self.links.get_mut(at(before)) {
            links.next = row;
        }
        if let Some(links) = self.links.get_mut(at(row)) {
            *links = RowLinks { before, next: NONE };
        }
    }

    fn unlink(&mut self, row: u32, instrument: u32) {
        let Some(RowLinks { before, next }) = self.links.get(at(row)).copied() else { return };
        let Some((first, last)) = self.ends.get_mut(at(instrument)) else { return };
        match self.links.get_mut(at(before)) {
            Some(links) => links.next = next,
            None => *first = next,
        }
        match self.links.get_mut(at(next)) {
            Some(links) => links.before = before,
            None => *last = before,
        }
    }
}

/// A row or an instrument as an index; [`NONE`] is outside.
fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn market(quotes: &[Quote], rules: &BookRules) -> Market {
        let mut market = Market::default();
        for quote in quotes {
            market.update(quote, rules);
        }
        market
    }

    fn quote(bid: Price, bid_size: u32, ask: Price, ask_size: u32, last: Price) -> Quote {
        Quote { bid, bid_size, ask, ask_size, last, ..Quote::default() }
    }

    fn resting(price: Price, queue: Option<u64>) -> OpenOrder {
        let order = OpenOrder::decode(&[1, 7, 0, 10 << 32, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        OpenOrder { price, queue, ..order }
    }

    #[test]
    fn an_arriving_order_takes_what_the_other_side_shows() {
        let rules = BookRules { depth_per_mille: 500, ..BookRules::default() };
        let mut market = market(&[quote(99, 10, 101, 20, 99)], &rules);
        let buy = |price, order_type| Order { price, order_type, ..Order::default() };
        assert_eq!(market.take(&buy(100, OrderType::Limit), 5), (0, 0));
        assert_eq!(market.take(&buy(105, OrderType::Limit), 4), (4, 101), "at the better price");
        assert_eq!(market.take(&buy(0, OrderType::Market), 100), (6, 101), "half of 20, less 4");
        assert_eq!(market.take(&buy(0, OrderType::Market), 1), (0, 101));
        let sell = Order { side: Side::Sell, price: 99, ..Order::default() };
        assert_eq!(market.take(&sell, 3), (3, 99));
        let sell = Order { price: 100, ..sell };
        assert_eq!(market.take(&sell, 3), (0, 0));
        assert_eq!(Market::default().take(&buy(0, OrderType::Market), 1), (0, 0), "no quote yet");
    }

    #[test]
    fn a_resting_order_waits_for_the_quantity_ahead_of_it() {
        let rules = BookRules::default();
        let mut market = market(&[quote(100, 30, 102, 5, 100)], &rules);
        assert_eq!(market.queue(Side::Buy, 100, &rules), Some(30));
        assert_eq!(market.queue(Side::Buy, 101, &rules), Some(0));
        assert_eq!(market.queue(Side::Buy, 99, &rules), None);
        // 20 of 30 are traded: 10 are ahead.
        market.update(&quote(100, 10, 102, 5, 100), &rules);
        assert_eq!(market.fill(&resting(100, Some(30)), &rules), (0, Some(10)));
        // They join behind it.
        market.update(&quote(100, 40, 102, 5, 100), &rules);
        assert_eq!(market.fill(&resting(100, Some(10)), &rules), (0, Some(10)));
        // 14 are traded: 4 of them are its own, and the next one gets none of them.
        market.update(&quote(100, 26, 102, 5, 100), &rules);
        assert_eq!(market.fill(&resting(100, Some(10)), &rules), (4, Some(0)));
        assert_eq!(market.fill(&resting(100, Some(12)), &rules), (0, Some(2)));
        // They are cancelled rather than traded: what is ahead is at most what is left.
        market.update(&quote(100, 1, 102, 5, 102), &rules);
        assert_eq!(market.fill(&resting(100, Some(2)), &rules), (0, Some(1)));
        // The price was another one until now.
        assert_eq!(market.fill(&resting(100, None), &rules), (0, Some(1)));
        // It is the best alone.
        market.update(&quote(99, 7, 102, 5, 99), &rules);
        assert_eq!(market.fill(&resting(100, Some(1)), &rules), (0, Some(0)));
    }

    #[test]
    fn a_resting_order_is_filled_where_the_other_side_reaches_it() {
        let rules = BookRules::default();
        let mut market = market(&[quote(97, 9, 100, 6, 100)], &rules);
        assert_eq!(market.fill(&resting(101, Some(50)), &rules), (6, Some(0)));
        assert_eq!(market.fill(&resting(101, Some(50)), &rules), (0, Some(0)), "nothing is left");
        assert_eq!(market.fill(&resting(99, Some(3)), &rules), (0, Some(0)));
        assert_eq!(market.fill(&resting(96, Some(3)), &rules), (0, Some(3)), "97 comes first");
    }
}
