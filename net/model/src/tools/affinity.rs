//! CPUs that a program's arguments name.

use super::{Tool, option};
use lowlat_host::CpuId;

/// The CPUs of client and server, if the command names both.
pub fn cpus_of(tool: Tool, command: &[String]) -> Option<(CpuId, CpuId)> {
    let (value, separator) = match tool {
        // "1,2" is one list for both ends there.
        Tool::Sfnt => (option(command, &["--affinity"])?, ';'),
        Tool::Netperf => (option(command, &["-T"])?, ','),
        Tool::Lowlat | Tool::Sockperf | Tool::Eflatency => return None,
    };
    let (client, server) = value.split_once(separator)?;
    Some((client.trim().parse().ok()?, server.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_named_by_some_programs() {
        let of =
            |tool, line: &str| cpus_of(tool, &line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of(Tool::Sfnt, "sfnt-pingpong --affinity=1;0 tcp h"), Some((1, 0)));
        assert_eq!(of(Tool::Sfnt, "sfnt-pingpong --affinity 1;0 tcp h"), Some((1, 0)));
        assert_eq!(of(Tool::Sfnt, "sfnt-pingpong --affinity 1,1 tcp h"), None);
        assert_eq!(
            (of(Tool::Netperf, "netperf -T 2,3"), of(Tool::Netperf, "netperf -T2,3")),
            (Some((2, 3)), Some((2, 3)))
        );
        assert_eq!(of(Tool::Sockperf, "sockperf ping-pong"), None);
    }
}
