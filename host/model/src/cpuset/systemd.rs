//! The spelling of CPU sets in systemd's unit files: `CPUAffinity=0-3 8` (systemd.exec(5)).

use super::CpuSet;

impl CpuSet {
    /// Parses CPUs as systemd does: numbers and ranges, separated by spaces or commas. It knows neither strides nor `N`
    /// nor `all`. `None` for other text, which systemd ignores.
    pub fn parse_systemd(text: &str) -> Option<Self> {
        let is_known = text.bytes().all(|byte| byte.is_ascii_digit() || b",- \t".contains(&byte));
        Self::parse_list(text).ok().filter(|_| is_known)
    }

    /// The spelling that systemd prints, with ranges separated by spaces: `0-3 8`.
    pub fn to_systemd(&self) -> String {
        self.join_ranges(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_and_ranges_are_read() {
        let of = |text: &str| CpuSet::parse_systemd(text).map(|cpus| cpus.to_list());
        assert_eq!(of("0-3 8,10"), Some("0-3,8,10".into()));
        assert_eq!(of(""), Some(String::new()));
        assert_eq!(["0-7:1/2", "all", "0-N", "numa", "3-1"].map(of), [None, None, None, None, None]);
    }

    #[test]
    fn ranges_are_separated_by_spaces() {
        assert_eq!(CpuSet::parse_list("0-3,8,10").unwrap().to_systemd(), "0-3 8 10");
    }
}
