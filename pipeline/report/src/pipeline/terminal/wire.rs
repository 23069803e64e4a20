//! Feed, gateway and tick to trade as text; a simulated exchange's result.

use crate::pipeline::terminal::{figures_table, whole};
use lowlat_pipeline::{ExchangeDocument, FeedFigures, GatewayFigures, StageFigures, WireRecord, WireStages};
use lowlat_text::article::Article;
use lowlat_text::page::written_by;
use lowlat_text::text::{add_detail, add_heading};
use lowlat_text::units::{count, duration, plural};

/// The parts of tick to trade with their names, in order, and the whole.
pub fn wire_stages(of: &WireStages) -> [(&'static str, &StageFigures); 8] {
    [
        ("packet received to read by md", &of.packet_to_read),
        ("read to published", &of.read_to_published),
        ("published to read by strategy", &of.published_to_strategy),
        ("strategy", &of.strategy),
        ("order written to read by td", &of.order_to_td),
        ("td: checks, until send call", &of.td_to_send),
        ("send call to packet sent", &of.send_to_wire),
        ("tick to trade", &of.tick_to_trade),
    ]
}

/// The sections of a run with a feed or a gateway.
pub fn add_wire(out: &mut String, wire: &WireRecord, width: usize) {
    add_heading(out, "Tick to trade");
    let stages: Vec<_> =
        wire_stages(&wire.stages).into_iter().filter(|(_, figures)| figures.count > 0).collect();
    if stages.is_empty() {
        add_detail(out, "no order has the stamps of both packets", width);
    } else {
        out.push_str(&figures_table(&stages).text(width));
    }
    for line in wire.feed.iter().map(feed_line).chain(wire.gateway.iter().map(gateway_line)) {
        add_detail(out, &line, width);
    }
}

/// Formats the feed's figures: "feed: 99,990 of 100,000 messages, 10 missing in 2 gaps; 3 late, 0 doubled".
pub fn feed_line(feed: &FeedFigures) -> String {
    let announced = feed.received + feed.missing;
    format!(
        "feed: {} of {} messages, {} missing in {}; {} late, {} doubled",
        count(feed.received),
        count(announced),
        count(feed.missing),
        plural(feed.gaps, "gap"),
        count(feed.late),
        count(feed.doubled)
    )
}

/// Formats the figures of td's connection to the exchange.
pub fn gateway_line(gateway: &GatewayFigures) -> String {
    let share = match gateway.measured {
        0 => "none has both stamps".to_owned(),
        measured => format!("parts add up for {:.2} %", gateway.adding_up as f64 * 100.0 / measured as f64),
    };
    format!(
        "exchange: {} orders, {} accepted, {} rejected, {} not sent; {share}",
        count(gateway.sent),
        count(gateway.accepted),
        count(gateway.rejected),
        count(gateway.unsent)
    )
}

/// Result of a simulated exchange.
fn article(document: &ExchangeDocument) -> Article {
    let figures = &document.quote_to_order;
    let said = match (figures.p50_ns, figures.p99_ns) {
        (Some(p50), Some(p99)) => {
            format!("quote to order {} at p50, {} at p99", duration(p50), duration(p99))
        }
        (Some(p50), None) => format!("quote to order {} at p50", duration(p50)),
        _ => "too few orders for percentiles".to_owned(),
    };
    let rate =
        if document.published_s > 0.0 { document.published as f64 / document.published_s } else { 0.0 };
    let result = format!("{} messages published: {said}", count(document.published));
    let datagrams = format!(
        "{} datagrams in {:.1} s, {} messages/s; {} behind schedule, at most {}",
        count(document.datagrams),
        document.published_s,
        count(whole(rate)),
        count(document.behind),
        duration(document.late_ns_max)
    );
    let orders = format!(
        "{} orders in {} connections, {} accepted, {} rejected, {} fills",
        count(document.orders),
        count(document.connections),
        count(document.accepted),
        count(document.rejected),
        count(document.fills)
    );
    let interrupted = if document.is_interrupted {
        "The exchange was interrupted; the results so far are shown."
    } else {
        ""
    };
    let measured = [("quote sent to order read", figures)];
    let closed = document.refused.iter().map(|why| format!("Closed a connection: {why}."));
    Article::new("exchange", "A simulated exchange", result)
        .detail(datagrams)
        .detail(orders)
        .detail(interrupted)
        .titled_table(
            "Measured by the exchange",
            figures_table(if figures.count > 0 { &measured } else { &[] }),
        )
        .doubts("Caveats", closed.collect())
}

/// The result of a simulated exchange for a terminal.
pub fn exchange_text(document: &ExchangeDocument, width: usize) -> String {
    article(document).to_text(width)
}

/// The page of a simulated exchange.
pub fn exchange_html(document: &ExchangeDocument) -> String {
    article(document).page(&written_by(&document.lowlat_version, "pipeline exchange", &document.started_at))
}
