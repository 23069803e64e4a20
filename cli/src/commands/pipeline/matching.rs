//! How a run's td fills orders, and which it takes.

use crate::arguments::{time_ns, word};
use clap::Args;
use lowlat_pipeline::{BookOptions, FilledBy, OrderLimits, PipelineOptions};
use lowlat_trade::td::{BookRules, Limits, Matching, Rules};

/// Largest depth and queue, in thousandths: a hundred times what is quoted.
const PER_MILLE_MAX: i64 = 100_000;

#[derive(Debug, Args)]
#[command(next_help_heading = "Orders")]
pub struct MatchingArguments {
    /// Fill orders against the run's quotes, or at once at their own price
    #[arg(long, value_name = "HOW", default_value = "quotes", conflicts_with = "gateway", value_parser = word([("quotes", FilledBy::Quotes), ("at-once", FilledBy::AtOnce)]))]
    fills: FilledBy,
    /// Time from td to the simulated exchange: 50us
    #[arg(long, value_name = "TIME", default_value = "0us", conflicts_with = "gateway", value_parser = time_ns)]
    book_latency: u64,
    /// Part of a quoted size that orders can take, in thousandths
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "gateway", value_parser = clap::value_parser!(u32).range(..=PER_MILLE_MAX))]
    book_depth: u32,
    /// Part of a quoted size that is ahead of an order at its price, in thousandths
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "gateway", value_parser = clap::value_parser!(u32).range(..=PER_MILLE_MAX))]
    book_queue: u32,
    /// Reject prices that differ from the last quote by more than this, in thousandths
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    price_deviation: Option<u32>,
    /// Reject orders of a larger quantity
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    quantity_max: Option<u32>,
    /// Reject orders that could lead to a larger position of a strategy in an instrument
    #[arg(long, value_name = "N")]
    position_max: Option<u32>,
    /// Reject orders of a strategy that has this many open
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    open_orders_max: Option<u32>,
    /// Reject orders and replaces of a strategy that sends more in a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    orders_per_second_max: Option<u32>,
}

impl MatchingArguments {
    /// The options of a run, with these. The exchange of another process fills the orders that it gets.
    pub fn add_to(&self, options: PipelineOptions) -> PipelineOptions {
        let filled_by = if options.gateway.is_some() { FilledBy::AtOnce } else { self.fills };
        let book = BookOptions {
            latency_ns: self.book_latency,
            depth_per_mille: self.book_depth,
            queue_per_mille: self.book_queue,
        };
        let limits = OrderLimits {
            price_deviation_max_per_mille: self.price_deviation,
            quantity_max: self.quantity_max,
            position_max: self.position_max,
            open_orders_max: self.open_orders_max,
            orders_per_s_max: self.orders_per_second_max,
        };
        PipelineOptions { filled_by, book, limits, ..options }
    }
}

/// td's rules in a run with these options.
pub fn rules(options: &PipelineOptions, instruments: u32) -> Rules {
    let BookOptions { latency_ns, depth_per_mille, queue_per_mille } = options.book;
    let matching = match options.filled_by {
        FilledBy::AtOnce => Matching::AtOnce(1),
        FilledBy::Quotes => Matching::Quotes(BookRules { latency_ns, depth_per_mille, queue_per_mille }),
    };
    let limits = &options.limits;
    let limits = Limits {
        quantity_max: limits.quantity_max,
        price_max_ten_thousandths: None,
        price_deviation_max_per_mille: limits.price_deviation_max_per_mille,
        position_max: limits.position_max,
        open_orders_max: limits.open_orders_max,
        orders_per_s_max: limits.orders_per_s_max,
    };
    Rules { instruments, matching, limits }
}
