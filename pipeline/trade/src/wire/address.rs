//! Addresses of feeds and gateways, as users write them.

use lowlat_node::Refusal;
use std::{fmt, net::SocketAddr, str::FromStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Quotes in lowlat's own format.
    Quotes,
    /// ITCH 5.0 in packets of MoldUDP64.
    Itch,
}

/// Address of a feed: `udp:239.1.1.1:5000`, `itch:[ff15::1]:5000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedAddress {
    pub format: Format,
    /// Group, or address of this host, and port.
    pub to: SocketAddr,
}

/// Address of an exchange: `tcp:10.0.0.1:5001`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayAddress(pub SocketAddr);

/// The words before the addresses of feeds.
const FORMATS: [(&str, Format); 2] = [("udp", Format::Quotes), ("itch", Format::Itch)];

fn not_an_address(found: &str, expected: &str) -> Refusal {
    Refusal::new(format!("\"{found}\": expected {expected}"))
}

impl FromStr for FeedAddress {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let expected = "udp:GROUP:PORT or itch:GROUP:PORT, such as udp:239.1.1.1:5000";
        let wrong = || not_an_address(text, expected);
        let (format, to) = text.split_once(':').ok_or_else(wrong)?;
        let (_, format) = FORMATS.into_iter().find(|(word, _)| *word == format).ok_or_else(wrong)?;
        let to: SocketAddr = to.parse().map_err(|_| wrong())?;
        if to.port() == 0 { Err(wrong()) } else { Ok(Self { format, to }) }
    }
}

impl fmt::Display for FeedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = FORMATS.iter().find(|(_, format)| *format == self.format).map_or("", |(word, _)| *word);
        write!(f, "{word}:{}", self.to)
    }
}

impl FromStr for GatewayAddress {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let to = text.strip_prefix("tcp:").and_then(|to| to.parse().ok());
        let expected = "tcp:ADDRESS:PORT, such as tcp:10.0.0.1:5001";
        to.map(Self).ok_or_else(|| not_an_address(text, expected))
    }
}

impl fmt::Display for GatewayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        for text in ["udp:239.1.1.1:5000", "itch:[ff15::1]:5000", "udp:127.0.0.1:1"] {
            assert_eq!(text.parse::<FeedAddress>().unwrap().to_string(), text);
        }
        for text in ["", "udp", "239.1.1.1:5000", "tcp:1.2.3.4:5", "udp:host:5", "udp:239.1.1.1:0"] {
            let error = text.parse::<FeedAddress>().unwrap_err().to_string();
            assert!(error.contains("udp:GROUP:PORT"), "{error}");
        }
        assert_eq!("tcp:[::1]:0".parse::<GatewayAddress>().unwrap().to_string(), "tcp:[::1]:0");
        assert!("udp:127.0.0.1:5".parse::<GatewayAddress>().is_err());
    }
}
