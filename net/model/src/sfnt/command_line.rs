//! Parts of sfnt-pingpong's command line that say what was measured.

/// Words that name a transport.
const TRANSPORTS: [&str; 5] = ["tcp", "udp", "pipe", "unix_stream", "unix_datagram"];
/// Options without a value of their own.
const FLAGS: [&str; 11] =
    ["spin", "mcast", "rtt", "forkboth", "connect", "mcastloop", "ipv4", "ipv6", "v6only", "more", "nodelay"];

/// A command line, in parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SfntCommandLine {
    /// Options with their values, without leading dashes.
    pub options: Vec<(String, String)>,
    /// The transport, if it was given.
    pub transport: Option<String>,
    /// The server, without its port.
    pub host: Option<String>,
}

impl SfntCommandLine {
    pub fn parse(text: &str) -> Self {
        let mut line = Self::default();
        let mut words = text.split_whitespace().skip(1).peekable();
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                let (name, value) = match option.split_once('=') {
                    Some((name, value)) => (name, value.to_owned()),
                    None if FLAGS.contains(&option) => (option, String::new()),
                    None => (option, words.next().unwrap_or_default().to_owned()),
                };
                line.options.push((name.to_owned(), value));
            } else if line.transport.is_none() && TRANSPORTS.contains(&word) {
                line.transport = Some(word.to_owned());
            } else if line.transport.is_some() && line.host.is_none() {
                line.host = Some(host(word).to_owned());
            }
        }
        line
    }

    /// Returns the last value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(option, _)| option == name).map(|(_, value)| value.as_str())
    }

    /// Number that an option gives, else the program's default.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.option(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// CPUs of client and server: `--affinity "1;0"`. Without a semicolon the number counts for both, and what follows
    /// it is ignored, as in `1,1`; so does the program.
    pub fn affinity(&self) -> Option<(u32, u32)> {
        let cpu = |text: &str| {
            let text = text.trim_matches(['"', '\'']);
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text.get(..end)?.parse().ok()
        };
        let value = self.option("affinity").unwrap_or("1;1");
        match value.split_once(';') {
            Some((client, server)) => cpu(client).zip(cpu(server)),
            None => cpu(value).map(|both| (both, both)),
        }
    }

    /// True if both ends spin.
    pub fn spins(&self) -> bool {
        self.option("spin").is_some()
    }

    /// True if the host is `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        self.host.as_deref().is_some_and(|host| {
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        })
    }
}

/// The host of `host:port`, `[host]:port` or a plain IPv6 address.
fn host(word: &str) -> &str {
    if let Some(bracketed) = word.strip_prefix('[') {
        return bracketed.split(']').next().unwrap_or(bracketed);
    }
    match word.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_command_line_has_both_ends_on_cpu_1_over_loopback() {
        let line = SfntCommandLine::parse("./sfnt-pingpong --maxms=10000 --affinity 1,1 tcp 127.0.0.1");
        assert_eq!((line.affinity(), line.is_loopback(), line.spins()), (Some((1, 1)), true, false));
        assert_eq!((line.number("maxms", 3_000), line.transport.as_deref()), (10_000, Some("tcp")));
    }

    #[test]
    fn defaults_flags_and_addresses_are_understood() {
        let line =
            SfntCommandLine::parse("sfnt-pingpong --spin --affinity \"2;3\" --sizes=1,32 udp [fe80::1]:2048");
        assert_eq!((line.affinity(), line.spins()), (Some((2, 3)), true));
        assert_eq!((line.host.as_deref(), line.is_loopback()), (Some("fe80::1"), false));
        let plain = SfntCommandLine::parse("sfnt-pingpong tcp ::1");
        assert_eq!((plain.affinity(), plain.is_loopback()), (Some((1, 1)), true));
        assert_eq!(SfntCommandLine::parse("sfnt-pingpong tcp h:7").host.as_deref(), Some("h"));
        assert_eq!(SfntCommandLine::parse("x --affinity").affinity(), None);
        assert_eq!(SfntCommandLine::parse(""), SfntCommandLine::default());
    }
}
