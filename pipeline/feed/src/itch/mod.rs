//! Nasdaq TotalView-ITCH 5.0: the messages that make quotes, in packets of MoldUDP64, capture files and plain files.

mod book;
mod capture;
mod channel;
mod file;
mod message;
mod mold;

pub use book::{Books, LEVELS_MAX, ORDERS_MAX, Symbols};
pub use file::{FileError, Messages, RecordedMessages, recorded};
pub use message::{Event, Message, Side, parse};
pub use mold::{HEAD_BYTES, decode, write_head, write_message};
