//! Balance of a run: records that were sent and that arrived, each counted where it happened.

use super::PipelineRecord;
use lowlat_text::units::{count, plural, rate};
use serde::{Deserialize, Serialize};

/// Senders that a finding names.
const NAMED_MAX: usize = 5;

/// Records from one role to the strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delivered {
    /// Records in the stream of md or td, which its memory holds.
    pub published: u64,
    /// Records that strategies read, by their own counters.
    pub received: u64,
    /// Records that strategies lost, by their own counters.
    pub lost: u64,
}

/// Orders of one process with strategies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SentOrders {
    /// Name of the process's node.
    pub name: String,
    /// Number of orders in its stream.
    pub sent: u64,
    /// Of those, orders that td answered, by its ledger. Cancels and replaces count too.
    pub answered: u64,
    /// Orders that it could not send, because td had no room; they are not in the stream.
    pub unsent: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Balance {
    pub quotes: Delivered,
    /// Answers and fills of td.
    pub answers: Delivered,
    /// True if each quote and answer goes to one strategy of the run, so that the counts above are equal. They differ
    /// if quotes are conflated, a strategy changed its process, or other processes sent orders too.
    pub compares_deliveries: bool,
    /// Fills, by td's ledger.
    pub fills: u64,
    /// Orders cancelled without a request, by td's ledger.
    #[serde(default)]
    pub cancelled: u64,
    /// Orders that td does not answer, because their strategy is not the sender's.
    pub orders_foreign: u64,
    /// Records in streams of orders that are no orders.
    pub not_orders: u64,
    pub senders: Vec<SentOrders>,
    /// Processes whose counters hold more than a process can count: something wrote over them. These counters are left
    /// out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub implausible: Vec<String>,
}

impl Balance {
    /// Returns the orders that all senders sent.
    pub fn sent(&self) -> u64 {
        self.senders.iter().map(|sender| sender.sent).sum()
    }

    /// Orders that could not be sent.
    pub fn unsent(&self) -> u64 {
        self.senders.iter().map(|sender| sender.unsent).sum()
    }

    /// Everything that does not add up, one sentence each. `answered` are the orders that td answered. A process
    /// that dies may miscount the record that it worked on: `deaths` records of a kind may be missing.
    pub fn findings(&self, answered: u64, deaths: u64) -> Vec<String> {
        let mut findings = Vec::new();
        let refused = self.orders_foreign + self.not_orders;
        let unanswered = self.sent().saturating_sub(answered).saturating_sub(refused);
        if unanswered > 0 {
            let open = self.senders.iter().filter(|of| of.sent != of.answered);
            let mut names: Vec<_> =
                open.map(|of| format!("{} {}", of.name, count(of.sent.abs_diff(of.answered)))).collect();
            let more = names.len().saturating_sub(NAMED_MAX);
            names.truncate(NAMED_MAX);
            names.extend((more > 0).then(|| format!("{more} more")));
            let (unanswered, orders, names) = (count(unanswered), orders(self.sent()), names.join(", "));
            findings.push(format!("{unanswered} of {orders} have no answer ({names})."));
        }
        if answered > self.sent() {
            findings.push(format!("td answered {}, and {} were sent.", orders(answered), count(self.sent())));
        }
        if self.orders_foreign > 0 {
            let said = orders(self.orders_foreign);
            findings.push(format!(
                "{said} were of strategies that are not the sender's: td does not answer them."
            ));
        }
        if self.not_orders > 0 {
            let records = plural(self.not_orders, "record");
            findings.push(format!("td received {records} that are no orders, and dropped them."));
        }
        if self.unsent() > 0 {
            let said = orders(self.unsent());
            findings.push(format!(
                "{said} could not be sent, because td had no room for them; their strategies were told."
            ));
        }
        if !self.implausible.is_empty() {
            findings.push(format!(
                "Counters of {} were overwritten: they are left out, and what they counted is unknown.",
                self.implausible.join(", ")
            ));
        }
        let (decided, published) = (answered + self.fills + self.cancelled, self.answers.published);
        if decided != published {
            let (decided, published) = (count(decided), count(published));
            findings.push(format!("td decided {decided} answers and fills, and published {published}."));
        }
        if self.compares_deliveries {
            let kinds = [("quotes", &self.quotes), ("answers", &self.answers)];
            findings.extend(kinds.into_iter().filter_map(|(kind, of)| of.finding(kind, deaths)));
        }
        findings
    }
}

impl Delivered {
    /// True if strategies received or lost everything that was published.
    pub fn has_arrived(&self) -> bool {
        self.received + self.lost >= self.published
    }

    fn finding(&self, kind: &str, deaths: u64) -> Option<String> {
        let arrived = self.received + self.lost;
        let [published, received, lost] = [self.published, self.received, self.lost].map(count);
        (arrived.abs_diff(self.published) > deaths).then(|| {
            format!("{published} {kind} were published, and strategies received {received} and lost {lost}.")
        })
    }
}

/// Returns the problems of a run, one sentence each.
pub fn findings(record: &PipelineRecord) -> Vec<String> {
    let mut findings = record.balance.findings(record.answers, record.restarts);
    if record.is_late() {
        findings.push(format!(
            "md published {} of {} scheduled ticks.",
            record.ticks_published, record.ticks_scheduled
        ));
    } else if record.is_slow() {
        findings.push(format!(
            "The schedule of {:.1} s took {:.1} s: {} quotes/s were reached of {}.",
            record.parameters.duration_s,
            record.measured_s,
            rate(record.reached_per_s()),
            rate(record.parameters.rate_per_s)
        ));
    }
    if record.lost > 0 {
        findings.push(format!(
            "{} records were lost because readers were too slow: no figure includes them.",
            record.lost
        ));
    }
    if record.missed_wakes > 0 {
        findings.push(format!(
            "{} wakes were missed until the safety net woke the reader: a publisher died or was stopped before the wake, or lowlat has a bug.",
            record.missed_wakes
        ));
    }
    if record.restarts > 0 {
        let restarts = plural(record.restarts, "restart");
        findings.push(format!("{restarts} after the death of a process."));
    }
    findings
}

fn orders(number: u64) -> String {
    plural(number, "order")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(name: &str, sent: u64, answered: u64) -> SentOrders {
        SentOrders { name: name.to_owned(), sent, answered, unsent: 0 }
    }

    fn balanced() -> Balance {
        Balance {
            quotes: Delivered { published: 10, received: 9, lost: 1 },
            answers: Delivered { published: 14, received: 14, lost: 0 },
            compares_deliveries: true,
            fills: 6,
            senders: vec![sender("s0", 5, 5), sender("s1", 3, 3)],
            ..Balance::default()
        }
    }

    #[test]
    fn what_does_not_add_up_is_named() {
        assert_eq!(balanced().findings(8, 0), Vec::<String>::new());
        let open = Balance { senders: vec![sender("s0", 6, 5), sender("s1", 3, 3)], ..balanced() };
        assert_eq!(open.findings(8, 0), ["1 of 9 orders have no answer (s0 1)."]);
        // A refused order is named once.
        let foreign = Balance { orders_foreign: 1, ..open };
        assert_eq!(foreign.findings(8, 0).len(), 1);
        assert_eq!(balanced().findings(9, 0).len(), 2, "an answer to no order, and one not published");
        let overwritten = Balance { implausible: vec!["s1".to_owned()], ..balanced() };
        assert!(overwritten.findings(8, 0)[0].starts_with("Counters of s1 were overwritten"));
        let unsent = SentOrders { unsent: 7, ..sender("s1", 3, 3) };
        let unsent = Balance { senders: vec![sender("s0", 5, 5), unsent], ..balanced() };
        assert!(unsent.findings(8, 0)[0].starts_with("7 orders could not be sent"));
        let mut unread = balanced();
        unread.quotes.received -= 1;
        assert_eq!(
            unread.findings(8, 0),
            ["10 quotes were published, and strategies received 8 and lost 1."]
        );
        assert_eq!(unread.findings(8, 1), Vec::<String>::new());
        unread.compares_deliveries = false;
        assert_eq!(unread.findings(8, 0), Vec::<String>::new());
    }
}
