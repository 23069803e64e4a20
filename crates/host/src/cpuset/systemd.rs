//! The spelling of CPU sets in systemd's unit files: `CPUAffinity=0-3 8` (systemd.exec(5)).

use super::CpuSet;

impl CpuSet {
    /// The spelling that systemd prints, with ranges separated by spaces: `0-3 8`.
    pub fn to_systemd(&self) -> String {
        self.join_ranges(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_separated_by_spaces() {
        assert_eq!(CpuSet::parse_list("0-3,8,10").unwrap().to_systemd(), "0-3 8 10");
    }
}
