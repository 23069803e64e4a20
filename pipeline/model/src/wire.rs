//! Wire to wire: quotes that md receives in packets, orders that td sends to an exchange, and the time between both.

use crate::StageFigures;
use serde::{Deserialize, Serialize};

/// Largest difference between the sum of the parts and the whole, in percent of the whole.
const DIFFERENCE_PERCENT_MAX: u64 = 2;

/// A range of sequence numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SequenceRange {
    pub first: u64,
    pub last: u64,
}

/// Messages that md received. Each quote that the feed announced is counted once, as received or as missing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FeedFigures {
    /// Datagrams of the feed, including those without quotes.
    pub datagrams: u64,
    /// Datagrams of another format.
    pub malformed: u64,
    /// Messages received in sequence: quotes, or messages of ITCH.
    pub received: u64,
    /// Number of quotes that md published.
    pub published: u64,
    /// Quotes of instruments that the run does not have; they are not published.
    pub foreign: u64,
    /// Number of gaps in the sequence.
    pub gaps: u64,
    /// Number of messages missing in them.
    pub missing: u64,
    /// Of those, messages in gaps during which the kernel dropped datagrams because the socket's buffer was full. The
    /// others were lost in the network or not sent.
    pub missing_in_socket: u64,
    pub first_gap: Option<SequenceRange>,
    pub last_gap: Option<SequenceRange>,
    /// Missing messages that arrived after newer ones; they are not published.
    pub late: u64,
    /// Messages that arrived again.
    pub doubled: u64,
    /// Datagrams that the kernel dropped because the socket's buffer was full.
    pub socket_drops: u64,
    /// Number of sessions of the feed.
    pub sessions: u64,
    /// True if the feed announced its end. If not, messages after the last one received may be missing.
    pub is_ended: bool,
    /// Datagrams without a receive stamp.
    pub unstamped: u64,
    /// Messages of ITCH that the books could not apply: unknown orders, and orders or prices beyond their bounds.
    pub unapplied: u64,
    /// Steps of the kernel's clock, after which stamps were converted again.
    pub clock_steps: u64,
    /// Datagrams that arrived over lo.
    pub over_loopback: u64,
}

/// Orders and answers between td and the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GatewayFigures {
    /// Number of orders that td sent.
    pub sent: u64,
    /// Orders that td rejected because the exchange could not be reached.
    pub unsent: u64,
    /// Orders that the exchange accepted.
    pub accepted: u64,
    /// Orders that the exchange rejected.
    pub rejected: u64,
    pub fills: u64,
    /// Orders in flight when the connection was lost; td rejected them, but the exchange may have executed them.
    pub lost_in_flight: u64,
    /// True if the connection was lost.
    pub is_lost: bool,
    /// Orders sent without a send stamp from the kernel.
    pub unstamped: u64,
    /// Orders with the stamps of both ends.
    pub measured: u64,
    /// Of those, orders whose parts add up to the whole within 2 %.
    pub adding_up: u64,
    /// True if the connection passes lo.
    pub is_loopback: bool,
    /// True if the exchange runs on this machine; it may be in another network namespace.
    pub is_same_machine: bool,
    /// The CPU to which the exchange is pinned on this machine.
    pub exchange_cpu: Option<u32>,
}

impl GatewayFigures {
    /// True if parts add up to a whole within 2 %.
    pub fn adds_up(parts_ns: u64, whole_ns: u64) -> bool {
        parts_ns.abs_diff(whole_ns).saturating_mul(100) <= whole_ns.saturating_mul(DIFFERENCE_PERCENT_MAX)
    }
}

/// Tick to trade, in the order of a quote's path. Each part starts where the previous one ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WireStages {
    /// From the packet's receive stamp until md had read it.
    pub packet_to_read: StageFigures,
    /// Until md had decoded it and published the quote.
    pub read_to_published: StageFigures,
    /// Until the strategy had read the quote.
    pub published_to_strategy: StageFigures,
    /// Until the strategy had written the order.
    pub strategy: StageFigures,
    /// Until td had read the order.
    pub order_to_td: StageFigures,
    /// Until td, having checked the order, called send.
    pub td_to_send: StageFigures,
    /// Until the order's send stamp: the driver has it.
    pub send_to_wire: StageFigures,
    /// From the receive stamp to the send stamp, in the kernel's clock.
    pub tick_to_trade: StageFigures,
}

/// Everything on the wires of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WireRecord {
    /// The feed; `None` if md made the quotes.
    pub feed: Option<FeedFigures>,
    /// The gateway; `None` if td answered the orders itself.
    pub gateway: Option<GatewayFigures>,
    pub stages: WireStages,
}

impl WireRecord {
    /// True if nothing was lost.
    pub fn is_whole(&self) -> bool {
        let is_fed = self.feed.as_ref().is_none_or(|feed| {
            [feed.missing, feed.malformed, feed.socket_drops, feed.unapplied].iter().all(|count| *count == 0)
                && feed.is_ended
        });
        is_fed && self.gateway.as_ref().is_none_or(|gateway| gateway.unsent == 0 && !gateway.is_lost)
    }

    /// Returns the doubts about the run, one sentence each.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        self.feed.iter().for_each(|feed| feed.doubts(&mut doubts));
        self.gateway.iter().for_each(|gateway| gateway.doubts(&mut doubts));
        doubts
    }
}

impl FeedFigures {
    fn doubts(&self, doubts: &mut Vec<String>) {
        let range = |range: &Option<SequenceRange>| {
            range.map_or_else(String::new, |range| format!("{} to {}", range.first, range.last))
        };
        if self.missing > 0 {
            let (first, last) = (range(&self.first_gap), range(&self.last_gap));
            let last = if self.gaps > 1 { format!(", last {last}") } else { String::new() };
            let by_kernel = match self.missing_in_socket {
                0 => "the kernel dropped none of them".to_owned(),
                count => format!("{count} of them while the kernel dropped datagrams of md's socket"),
            };
            doubts.push(format!(
                "{} messages of the feed are missing in {} gaps (first {first}{last}); {by_kernel}.",
                self.missing, self.gaps
            ));
        }
        if !self.is_ended {
            let end =
                "The feed did not announce its end, so messages after the last one received may be missing.";
            doubts.push(end.to_owned());
        }
        for (count, said) in [
            (
                self.socket_drops,
                "datagrams were dropped because the buffer of md's socket was full: raise --feed-buffer, or give md a CPU",
            ),
            (self.late, "of the missing messages arrived after newer ones and were not published"),
            (self.doubled, "messages of the feed arrived twice; they were published once"),
            (
                self.malformed,
                "datagrams to the feed's address were not of its format, or their sequence numbers are damaged",
            ),
            (self.foreign, "quotes were of instruments that the run does not have, and were not published"),
            (self.unstamped, "datagrams had no receive stamp, so their orders have no tick to trade"),
            (
                self.unapplied,
                "messages of ITCH did not fit the books: orders from before the run or in a gap, or beyond the books' bounds",
            ),
            (
                self.clock_steps,
                "times the kernel's clock was set during the run; figures of that moment are wrong",
            ),
            (
                self.over_loopback,
                "datagrams of the feed arrived over lo, so the figures include no NIC: name the interface (--feed-interface), and publish from another host",
            ),
            (self.sessions.saturating_sub(1), "times the feed started a new session during the run"),
        ] {
            if count > 0 {
                doubts.push(format!("{count} {said}."));
            }
        }
    }
}

impl GatewayFigures {
    fn doubts(&self, doubts: &mut Vec<String>) {
        if self.is_lost {
            doubts.push(format!(
                "The connection to the exchange was lost, with {} orders in flight; td rejected those, but the exchange may have executed them.",
                self.lost_in_flight
            ));
        }
        if self.unsent > 0 {
            doubts
                .push(format!("{} orders could not be sent to the exchange; td rejected them.", self.unsent));
        }
        if self.unstamped > 0 {
            doubts.push(format!("{} orders have no send stamp, so no tick to trade.", self.unstamped));
        }
        let near = "The exchange runs on this machine";
        doubts.extend(match (self.is_loopback, self.is_same_machine, self.exchange_cpu) {
            (true, ..) => Some(
                "The orders pass lo, so the figures include no NIC: run the exchange on another host, or in another network namespace."
                    .to_owned(),
            ),
            (false, true, None) => Some(format!("{near} and takes CPU time from the pipeline.")),
            (false, true, Some(cpu)) => Some(format!("{near}, on CPU {cpu}.")),
            (false, false, _) => None,
        });
        let off = self.measured.saturating_sub(self.adding_up);
        // 1 of 100 is allowed.
        if off.saturating_mul(100) > self.measured {
            doubts.push(format!(
                "The parts of {off} of {} orders do not add up to their tick to trade within 2 %.",
                self.measured
            ));
        }
    }
}

/// Measurements of a simulated exchange from outside, in its own clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ExchangeDocument {
    /// Always "lowlat-exchange".
    pub document: String,
    /// Version of this shape. Fields are only added.
    pub schema_version: u32,
    /// The lowlat that wrote it.
    pub lowlat_version: String,
    /// Start of publishing, RFC 3339, UTC.
    pub started_at: String,
    /// True if the user ended it.
    pub is_interrupted: bool,
    /// Name of the host, title and note.
    #[serde(flatten)]
    pub labels: lowlat_host::Labels,
    /// Number of messages that it published.
    pub published: u64,
    /// Number of datagrams that carried them.
    pub datagrams: u64,
    /// Seconds from the first to the last.
    pub published_s: f64,
    /// Messages that were late because the exchange could not keep up.
    pub behind: u64,
    /// Longest delay of a message, ns.
    pub late_ns_max: u64,
    /// Number of orders that it received.
    pub orders: u64,
    pub accepted: u64,
    pub rejected: u64,
    pub fills: u64,
    /// Number of connections that it accepted.
    pub connections: u64,
    /// Connections that were closed because of what they sent or did not send, with reasons.
    pub refused: Vec<String>,
    /// Number of connections closed for such reasons.
    pub refused_total: u64,
    /// From the send of a quote until the order that names it was read.
    pub quote_to_order: StageFigures,
}

impl ExchangeDocument {
    /// Current value of the field [`ExchangeDocument::schema_version`].
    pub const SCHEMA_VERSION: u32 = 1;
    /// Value of the field [`ExchangeDocument::document`].
    pub const DOCUMENT: &'static str = "lowlat-exchange";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_within_two_percent() {
        let adds = |parts, whole| GatewayFigures::adds_up(parts, whole);
        assert!(adds(100, 100) && adds(102, 100) && adds(98, 100) && adds(0, 0));
        assert!(!adds(103, 100) && !adds(97, 100) && !adds(1, 0) && !adds(0, 1 << 50));
    }

    #[test]
    fn losses_are_doubts() {
        let feed = FeedFigures { is_ended: true, ..FeedFigures::default() };
        let whole = WireRecord { feed: Some(feed.clone()), ..WireRecord::default() };
        assert!(whole.is_whole() && whole.doubts().is_empty());
        let gap = Some(SequenceRange { first: 4, last: 6 });
        let feed = FeedFigures { gaps: 1, missing: 3, first_gap: gap, last_gap: gap, ..feed };
        let gateway =
            GatewayFigures { is_lost: true, measured: 10, adding_up: 9, ..GatewayFigures::default() };
        let record = WireRecord { feed: Some(feed), gateway: Some(gateway), ..WireRecord::default() };
        let doubts = record.doubts().join("\n");
        assert!(!record.is_whole());
        assert!(doubts.contains("3 messages of the feed are missing in 1 gaps (first 4 to 6)"), "{doubts}");
        assert!(doubts.contains("The parts of 1 of 10 orders"), "{doubts}");
    }
}
