//! A strategy that reads a stream of another program, and has a timer.

use crate::master_thread::{MasterThread, join, reads, until, writes};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    Event, Keys, Strategies, Wait,
    clock::now_ns,
    records::{Order, Side, kind},
    strategy::{self, Orders, OtherSeen, QuoteSeen, Strategy},
};
use std::thread;

const DELAY_NS: u64 = 20_000_000;

/// Orders as many as a signal says, some time after it.
#[derive(Default)]
struct Delayed {
    quantity: u32,
    heard: Vec<String>,
    late_ns: Option<u64>,
}

impl Strategy for Delayed {
    fn on_quote(&mut self, _: &mut Orders<'_>, _: &QuoteSeen) {}

    fn on_record(&mut self, orders: &mut Orders<'_>, seen: &OtherSeen<'_>) {
        self.heard.push(seen.stream.as_str().to_owned());
        self.quantity = u32::from(seen.payload[0]);
        orders.set_timer(seen.received_ns + DELAY_NS);
    }

    fn on_timer(&mut self, orders: &mut Orders<'_>, due_ns: u64) {
        self.late_ns = now_ns().checked_sub(due_ns);
        orders.send(7, Side::Sell, 1, self.quantity).unwrap();
    }
}

#[test]
fn a_strategy_hears_other_streams_and_its_timer() {
    let master = MasterThread::start(|_| ());
    for wait in [Wait::Parked, Wait::Fast] {
        let name = format!("delayed-{wait:?}");
        let mut asked = strategy::join(&name, "strategy", Strategies::Free, &[], 1 << 16, wait);
        asked.reads.push(reads("signals", Keys::Only(vec![3])));
        let node = master.join(&asked);
        let number = node.strategies()[0];
        let running = thread::spawn(move || {
            let mut strategy = Delayed::default();
            strategy::run(node, number, &mut strategy).unwrap();
            strategy
        });
        let mut writer =
            master.join(&join("signaller", writes("signals", 4), vec![reads("orders.*", Keys::All)]));
        let started_ns = now_ns();
        for instrument in [2, 3] {
            let stamp = Stamp { kind: 100, instrument, generated: now_ns(), ..Stamp::default() };
            writer.publisher().publish(&stamp, &[u8::try_from(instrument).unwrap() + 40]).unwrap();
        }
        let mut order = None;
        until("the order", || {
            writer.poll(&mut |_, event| {
                if let Event::Record { record, payload, .. } = event
                    && record.stamp.kind == kind::ORDER
                {
                    order = Some((record.stamp, Order::decode(payload).unwrap()));
                }
            });
            order.is_some()
        });
        let (stamp, order) = order.unwrap();
        assert_eq!((stamp.source, stamp.instrument, order.side, order.quantity), (number, 7, Side::Sell, 43));
        assert!(stamp.generated >= started_ns + DELAY_NS, "not before the time");
        master.with(move |master, _| master.stop_node(&name).unwrap());
        let strategy = running.join().unwrap();
        assert_eq!(strategy.heard, ["signals"], "of its instrument");
        assert!(strategy.late_ns.is_some());
    }
}
