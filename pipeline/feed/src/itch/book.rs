//! Order books: best bid and offer of each instrument, from its orders.
//!
//! Memory is bounded and taken at the start: a number of orders, and of price levels per side. What exceeds them is
//! counted, not hidden.

use super::{Event, Message, Side};
use crate::quotes::FeedQuote;
use std::collections::HashMap;

/// Most orders in all books.
pub const ORDERS_MAX: usize = 1 << 20;
/// Most price levels of a side; the worst ones are dropped.
pub const LEVELS_MAX: usize = 512;
/// Marks a stock that is not an instrument.
const NONE: u32 = u32::MAX;
/// Marks a stock whose symbol is unknown.
const UNKNOWN: u32 = u32::MAX - 1;

/// Selection of the stocks that are instruments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Symbols {
    /// The first ones of the feed, up to a number.
    First(u32),
    /// These symbols, in this order.
    Only(Vec<[u8; 8]>),
}

impl Symbols {
    /// Symbols as users write them; `None` if one is empty or longer than 8 characters.
    pub fn only(symbols: &[String]) -> Option<Self> {
        let padded = |symbol: &String| {
            let mut bytes = [b' '; 8];
            let fits = (1..=8).contains(&symbol.len()) && symbol.is_ascii();
            bytes.iter_mut().zip(symbol.bytes()).for_each(|(to, from)| *to = from);
            fits.then_some(bytes)
        };
        symbols.iter().map(padded).collect::<Option<_>>().map(Self::Only)
    }
}

#[derive(Debug, Clone, Copy)]
struct Order {
    instrument: u32,
    side: Side,
    shares: u32,
    price: u32,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    price: u32,
    shares: u64,
    orders: u32,
}

/// One side, with the best price last.
#[derive(Debug, Clone)]
struct Levels {
    side: Side,
    levels: Vec<Level>,
}

impl Levels {
    fn new(side: Side) -> Self {
        Self { side, levels: Vec::with_capacity(LEVELS_MAX + 1) }
    }

    fn find(&self, price: u32) -> Result<usize, usize> {
        match self.side {
            Side::Bid => self.levels.binary_search_by(|level| level.price.cmp(&price)),
            Side::Ask => self.levels.binary_search_by(|level| price.cmp(&level.price)),
        }
    }

    /// Adds an order. Returns false if a level was dropped.
    fn add(&mut self, price: u32, shares: u32) -> bool {
        match self.find(price) {
            Ok(at) => {
                if let Some(level) = self.levels.get_mut(at) {
                    level.shares += u64::from(shares);
                    level.orders += 1;
                }
            }
            Err(at) => self.levels.insert(at, Level { price, shares: u64::from(shares), orders: 1 }),
        }
        let is_full = self.levels.len() > LEVELS_MAX;
        if is_full {
            self.levels.remove(0);
        }
        !is_full
    }

    /// Takes shares away, and the order if it is complete. A level that was dropped is not found.
    fn take(&mut self, price: u32, shares: u32, is_whole: bool) {
        let Ok(at) = self.find(price) else { return };
        let Some(level) = self.levels.get_mut(at) else { return };
        level.shares = level.shares.saturating_sub(u64::from(shares));
        level.orders -= u32::from(is_whole && level.orders > 0);
        if level.orders == 0 {
            self.levels.remove(at);
        }
    }

    fn best(&self) -> (i64, u32) {
        self.levels
            .last()
            .map_or((0, 0), |level| (i64::from(level.price), u32::try_from(level.shares).unwrap_or(u32::MAX)))
    }
}

#[derive(Debug, Clone)]
struct Book {
    bids: Levels,
    asks: Levels,
    last: u32,
    symbol: [u8; 8],
    /// The quote after the last message.
    quoted: FeedQuote,
    /// A quote was returned at least once.
    is_quoted: bool,
}

/// The books of all instruments. Allocates only when it is made.
#[derive(Debug)]
pub struct Books {
    symbols: Symbols,
    list: Vec<Book>,
    /// Number of the instrument by stock.
    instruments: Box<[u32]>,
    orders: HashMap<u64, Order>,
    unapplied: u64,
}

impl Books {
    pub fn new(symbols: Symbols) -> Self {
        let (count, known) = match &symbols {
            Symbols::First(count) => (usize::try_from(*count).unwrap_or(0), &[][..]),
            Symbols::Only(list) => (list.len(), list.as_slice()),
        };
        let mut books = Vec::with_capacity(count);
        books.extend(known.iter().map(|symbol| Book::new(*symbol)));
        Self {
            symbols,
            list: books,
            instruments: vec![UNKNOWN; usize::from(u16::MAX) + 1].into(),
            orders: HashMap::with_capacity(ORDERS_MAX),
            unapplied: 0,
        }
    }

    /// Symbols of the instruments, by number.
    pub fn symbols(&self) -> impl Iterator<Item = String> {
        self.list.iter().map(|book| String::from_utf8_lossy(&book.symbol).trim_end().to_owned())
    }

    /// Messages that could not be applied: of unknown orders, or beyond the bounds.
    pub fn unapplied(&self) -> u64 {
        self.unapplied
    }

    /// Applies a message, and returns the quote of its instrument if that has changed.
    pub fn apply(&mut self, message: &Message) -> Option<FeedQuote> {
        let known = self.instruments.get(usize::from(message.locate)).copied()?;
        let is_listed = known != UNKNOWN && message.event != Event::Directory;
        let symbol = message.symbol.filter(|_| !is_listed);
        let instrument = symbol.map_or(known, |symbol| self.list(message.locate, symbol));
        let book = usize::try_from(instrument).ok().and_then(|at| self.list.get_mut(at))?;
        let orders = &mut self.orders;
        let is_applied = match message.event {
            Event::Add { reference, side, shares, price } => {
                let order = Order { instrument, side, shares, price };
                orders.len() < ORDERS_MAX && book.add(orders, reference, order)
            }
            Event::Executed { reference, shares, price } => {
                let order = book.reduce(orders, (instrument, reference), shares);
                book.last = order.map_or(book.last, |order| price.unwrap_or(order.price));
                order.is_some()
            }
            Event::Cancel { reference, shares } => {
                book.reduce(orders, (instrument, reference), shares).is_some()
            }
            Event::Delete { reference } => book.reduce(orders, (instrument, reference), u32::MAX).is_some(),
            Event::Replace { old, new, shares, price } => {
                let order = book.reduce(orders, (instrument, old), u32::MAX);
                order.is_some_and(|order| book.add(orders, new, Order { instrument, shares, price, ..order }))
            }
            Event::Trade { price } => {
                book.last = if price > 0 { price } else { book.last };
                true
            }
            Event::System(_) | Event::Directory | Event::Other => true,
        };
        self.unapplied += u64::from(!is_applied);
        book.quote(instrument)
    }

    /// Enters the symbol of a stock, and returns the number of its instrument.
    fn list(&mut self, locate: u16, symbol: [u8; 8]) -> u32 {
        let found = self.list.iter().position(|book| book.symbol == symbol);
        let number = match (&self.symbols, found) {
            (_, Some(at)) => u32::try_from(at).unwrap_or(NONE),
            (Symbols::First(count), None) if self.list.len() < usize::try_from(*count).unwrap_or(0) => {
                self.list.push(Book::new(symbol));
                u32::try_from(self.list.len() - 1).unwrap_or(NONE)
            }
            _ => NONE,
        };
        if let Some(place) = self.instruments.get_mut(usize::from(locate)) {
            *place = number;
        }
        number
    }
}

impl Book {
    fn new(symbol: [u8; 8]) -> Self {
        let [bids, asks] = [Side::Bid, Side::Ask].map(Levels::new);
        Self { bids, asks, last: 0, symbol, quoted: FeedQuote::default(), is_quoted: false }
    }

    fn side(&mut self, side: Side) -> &mut Levels {
        match side {
            Side::Bid => &mut self.bids,
            Side::Ask => &mut self.asks,
        }
    }

    /// Returns false if the reference is in use, or a level was dropped.
    fn add(&mut self, orders: &mut HashMap<u64, Order>, reference: u64, order: Order) -> bool {
        if orders.contains_key(&reference) {
            return false;
        }
        orders.insert(reference, order);
        self.side(order.side).add(order.price, order.shares)
    }

    /// Takes shares of an order away, and returns the order. `None` if this book has no such order.
    fn reduce(
        &mut self,
        orders: &mut HashMap<u64, Order>,
        (instrument, reference): (u32, u64),
        shares: u32,
    ) -> Option<Order> {
        let order = orders.get_mut(&reference).filter(|order| order.instrument == instrument)?;
        let taken = shares.min(order.shares);
        order.shares -= taken;
        let left = *order;
        let is_whole = left.shares == 0;
        if is_whole {
            orders.remove(&reference);
        }
        self.side(left.side).take(left.price, taken, is_whole);
        Some(left)
    }

    /// The quote if it has changed. The first one has both sides; later, a side without orders is 0.
    fn quote(&mut self, instrument: u32) -> Option<FeedQuote> {
        let ((bid, bid_size), (ask, ask_size)) = (self.bids.best(), self.asks.best());
        let is_whole = bid > 0 && ask > 0;
        let middle = if is_whole { bid.midpoint(ask) } else { self.quoted.last };
        let last = if self.last > 0 { i64::from(self.last) } else { middle };
        let quote = FeedQuote { instrument, bid_size, ask_size, bid, ask, last };
        let is_new = quote != self.quoted && (is_whole || self.is_quoted);
        self.is_quoted |= is_new;
        self.quoted = quote;
        is_new.then_some(quote)
    }
}
