//! Libraries that replace the kernel's sockets: Onload, VMA and XLIO.

use crate::Mode;

/// User-space network stack that replaces the kernel's sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accelerator {
    /// Onload, for Solarflare NICs and others through AF_XDP, with a profile such as "latency".
    Onload(String),
    /// VMA, for NVIDIA NICs.
    Vma,
    /// XLIO, for NVIDIA NICs.
    Xlio,
}

impl Accelerator {
    /// Returns the name for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Onload(_) => "Onload",
            Self::Vma => "VMA",
            Self::Xlio => "XLIO",
        }
    }

    /// Returns the file name of the library that a process maps when it is active.
    pub fn library(&self) -> &'static str {
        match self {
            Self::Onload(_) => "libonload.so",
            Self::Vma => "libvma.so",
            Self::Xlio => "libxlio.so",
        }
    }

    /// Returns the words to put before the command: Onload has a launcher, whose profile sets its variables. Without
    /// one it waits for interrupts.
    pub fn launcher(&self, mode: Mode) -> Vec<String> {
        match (self, mode) {
            (Self::Onload(profile), Mode::Spin) => ["onload", "-p", profile].map(str::to_owned).to_vec(),
            (Self::Onload(_), Mode::Interrupt) => vec!["onload".to_owned()],
            (Self::Vma | Self::Xlio, _) => Vec::new(),
        }
    }

    /// Returns the variables of the library to preload, for VMA and XLIO. A poll count of -1 polls until a packet
    /// arrives, 1 polls once and then sleeps (NVIDIA, "Basic Performance Tuning").
    pub fn preload(&self, mode: Mode) -> Option<[(String, &'static str); 3]> {
        if matches!(self, Self::Onload(_)) {
            return None;
        }
        let (receive, select) = match mode {
            Mode::Spin => ("-1", "-1"),
            Mode::Interrupt => ("1", "0"),
        };
        let of_library = |variable| format!("{}_{variable}", self.name());
        let variables = [("SPEC", "latency"), ("RX_POLL", receive), ("SELECT_POLL", select)];
        Some(variables.map(|(variable, value)| (of_library(variable), value)))
    }
}

/// Returns the variables that a profile of Onload sets, from its lines "onload_set NAME VALUE".
pub fn profile_variables(text: &str) -> Vec<(String, String)> {
    let variable = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (verb, name, value) = (words.next()?, words.next()?, words.next()?);
        (verb == "onload_set").then(|| (name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::profile_variables;

    #[test]
    fn profiles_list_their_variables() {
        let text = "# Low latency\nonload_set EF_POLL_USEC 100000\n\nonload_set EF_TCP_FASTSTART_INIT 0\nonload_import safe\n";
        let expected = [("EF_POLL_USEC", "100000"), ("EF_TCP_FASTSTART_INIT", "0")];
        assert_eq!(
            profile_variables(text),
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
