//! A strategy's orders as records of its node's stream.

use super::{Numbers, OrderSink, SendError};
use crate::{Node, NodePublishError, Publisher, clock::now_ns, records::PAYLOAD_BYTES};
use lowlat_ipc::stream::{self, Stamp};

/// The order numbers of a strategy in this node. Numbers of a foreign strategy are useless: td refuses them.
pub fn numbers_of(node: &Node, strategy: u32) -> Numbers {
    Numbers::of_turn(node.turn(strategy).unwrap_or(0))
}

/// Sends a strategy's orders to its node's stream.
pub struct OrderStream<'a, F> {
    publisher: &'a mut Publisher,
    numbers: &'a mut Numbers,
    unsent: F,
}

impl<'a, F: FnMut(NodePublishError)> OrderStream<'a, F> {
    /// Orders of the strategy with these numbers. `unsent` gets the reason of each order that is not sent.
    #[inline]
    pub fn new(publisher: &'a mut Publisher, numbers: &'a mut Numbers, unsent: F) -> Self {
        Self { publisher, numbers, unsent }
    }
}

impl<F: FnMut(NodePublishError)> OrderSink for OrderStream<'_, F> {
    #[inline]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn send(&mut self, stamp: Stamp, payload: &[u8; PAYLOAD_BYTES]) -> Result<(), SendError> {
        match self.publisher.publish_waking(&Stamp { generated: now_ns(), ..stamp }, payload, true) {
            Ok(_) => Ok(()),
            Err(error) => {
                (self.unsent)(error);
                Err(match error {
                    NodePublishError::Refused(stream::PublishError::NoCredit { .. }) => SendError::NoCredit,
                    NodePublishError::Refused(stream::PublishError::Fenced { .. }) => SendError::Fenced,
                    _ => SendError::Refused,
                })
            }
        }
    }

    #[inline]
    fn number(&mut self) -> u64 {
        self.numbers.take()
    }
}

/// Keeps the first error that ends a role.
pub fn note(unsent: &mut Option<NodePublishError>, error: NodePublishError) {
    // td is dead, or too slow: the strategy handles an order that is not sent, and continues.
    if !matches!(error, NodePublishError::Refused(stream::PublishError::NoCredit { .. })) {
        unsent.get_or_insert(error);
    }
}
