//! Libraries that replace the kernel's sockets: Onload, VMA and XLIO.

use crate::Mode;

/// Variable that sets how long Onload spins, in microseconds.
const POLL_USEC: &str = "EF_POLL_USEC";

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
    /// one it waits for interrupts, unless a handler that Onload has for the program makes it spin.
    pub fn launcher(&self, mode: Mode) -> Vec<String> {
        match (self, mode) {
            (Self::Onload(profile), Mode::Spin) => ["onload", "-p", profile].map(str::to_owned).to_vec(),
            (Self::Onload(_), Mode::Interrupt) => ["onload", "--no-app-handler"].map(str::to_owned).to_vec(),
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

/// Returns the variables in the output of `onload --test`, which evaluates profiles, handlers and what the environment
/// already sets.
pub fn tested_variables(output: &str) -> Vec<(String, String)> {
    let variables = output.lines().filter_map(|line| line.split_once(" env: ")?.1.split_once('='));
    let of_onload = variables.filter(|(name, _)| name.starts_with("EF_"));
    of_onload.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns a warning if the variables in force make Onload wait in another way than the mode says.
pub fn other_wait(mode: Mode, variables: &[(String, String)]) -> Option<String> {
    let value = variables.iter().find(|(name, _)| name == POLL_USEC).map_or("0", |(_, value)| value);
    match (mode, value) {
        (Mode::Spin, "0") => Some(format!("Onload does not spin: {POLL_USEC} is 0 or not set")),
        (Mode::Interrupt, "0") | (Mode::Spin, _) => None,
        (Mode::Interrupt, value) => Some(format!("Onload spins before it waits: {POLL_USEC} is {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_in_force_are_those_of_the_launcher() {
        let output = "onload: env: LD_PRELOAD=libonload.so\nonload: env: EF_POLL_USEC=0\nonload: env: EF_TCP_FASTSTART_INIT=0\n";
        let variables = tested_variables(output);
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [POLL_USEC, "EF_TCP_FASTSTART_INIT"]);
        let spins = [(POLL_USEC.to_owned(), "100000".to_owned())];
        assert_eq!((other_wait(Mode::Spin, &spins), other_wait(Mode::Interrupt, &variables)), (None, None));
        assert!(other_wait(Mode::Spin, &variables).unwrap().contains("does not spin"));
        assert!(other_wait(Mode::Interrupt, &spins).unwrap().contains("EF_POLL_USEC is 100000"));
    }
}
