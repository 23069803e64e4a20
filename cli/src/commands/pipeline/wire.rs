//! Arguments of a feed and a gateway.

use crate::arguments::bytes;
use clap::Args;
use lowlat_trade::wire::{FeedAddress, GatewayAddress};

#[derive(Debug, Clone, Args)]
pub struct WireArguments {
    /// Read quotes from a feed: udp:GROUP:PORT in lowlat's format, itch:GROUP:PORT in ITCH 5.0; see
    /// docs/feed.md
    #[arg(long, value_name = "FEED")]
    pub feed: Option<FeedAddress>,
    /// Join the feed's group on this interface, by name or IPv4 address [default: by route]
    #[arg(long, value_name = "IF", requires = "feed")]
    pub feed_interface: Option<String>,
    /// Receive buffer of the feed's socket [default: 8M]
    #[arg(long, value_name = "SIZE", value_parser = bytes, requires = "feed")]
    pub feed_buffer: Option<u64>,
    /// Symbols of ITCH, with an instrument for each [default: the first ones]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub symbols: Vec<String>,
    /// Channel of a capture that has several: SESSION, GROUP, GROUP:PORT, :PORT or SESSION@GROUP:PORT
    #[arg(long, value_name = "CHANNEL", requires = "ticks")]
    pub channel: Option<String>,
    /// Send orders to an exchange: tcp:ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub gateway: Option<GatewayAddress>,
    /// Send an order for each N quotes of a strategy's instrument
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub quotes_per_order: Option<u32>,
}
