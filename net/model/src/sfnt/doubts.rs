//! Doubts about the figures of an old log.

use super::SfntLog;

/// Default of `--maxms`, in milliseconds.
const TIME_MS_DEFAULT: u64 = 3_000;
/// Default of `--maxiter`.
const ITERATIONS_DEFAULT: u64 = 1_000_000;
/// Share of the time per size that a row must account for: the mean times the iterations, twice.
const TIME_SHARE_MIN: f64 = 0.8;
const TIME_SHARE_MAX: f64 = 1.3;

/// Returns the doubts about a log, one sentence each.
pub fn doubts(log: &SfntLog) -> Vec<String> {
    let mut doubts: Vec<String> = log.left_out().collect();
    let Some(line) = log.command_line() else {
        doubts.push("The header has no command line, so the set-up is unknown.".to_owned());
        return doubts;
    };
    let is_loopback = line.is_loopback();
    let is_one_host = is_loopback || line.host.is_none();
    if is_loopback {
        doubts.push(format!(
            "Both ends ran on one host over {}: this is not the latency of a NIC.",
            line.host.as_deref().unwrap_or("loopback")
        ));
    }
    let preload = log.value("LD_PRELOAD").unwrap_or_default();
    if preload.contains("onload") && is_loopback {
        let is_asked = log.value("EF_TCP_CLIENT_LOOPBACK").is_some_and(|value| value != "0");
        if !is_asked {
            doubts.push(
                "Onload was loaded, but it leaves loopback to the kernel unless EF_TCP_CLIENT_LOOPBACK is set, and the \
                 header does not show that."
                    .to_owned(),
            );
        }
    }
    match log.affinity() {
        Some((client, server)) if client == server && is_one_host => doubts.push(format!(
            "Both ends ran on CPU {client}: each message was a context switch there. sfnt-pingpong separates the CPUs \
             of client and server by a semicolon."
        )),
        _ => {}
    }
    doubts.extend(log.values("WARNING").map(|warning| format!("sfnt-pingpong warned: {warning}.")));
    // 1.0.0 measures until the error is small, without a limit of time.
    doubts.extend(time_doubt(log, &line).filter(|_| log.value("miniter").is_none()));
    doubts
}

/// Rows whose iterations do not account for the time per size.
fn time_doubt(log: &SfntLog, line: &super::SfntCommandLine) -> Option<String> {
    let time_ns = line.number("maxms", TIME_MS_DEFAULT) as f64 * 1e6;
    let iterations_max = line.number("maxiter", ITERATIONS_DEFAULT);
    let legs = if log.is_round_trip() { 1.0 } else { 2.0 };
    let is_off = |row: &&super::SfntRow| {
        let share = row.figures.mean_ns as f64 * row.figures.iterations as f64 * legs / time_ns;
        let is_complete = row.figures.iterations >= iterations_max;
        share > TIME_SHARE_MAX || (share < TIME_SHARE_MIN && !is_complete)
    };
    let off: Vec<String> = log.rows.iter().filter(is_off).map(|row| row.size_bytes.to_string()).collect();
    (!off.is_empty()).then(|| {
        format!(
            "Iterations times mean, twice, is not about --maxms for {}: the client waited for something else, or the run \
             was shorter.",
            if off.len() == 1 { format!("size {}", off.join(", ")) } else { format!("sizes {}", off.join(", ")) }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sfnt::{parse, reference};

    #[test]
    fn the_published_tables_are_doubtful() {
        for log in reference::published().unwrap() {
            let doubts = doubts(&log);
            let [loopback, onload, shared] = doubts.as_slice() else { panic!("{doubts:?}") };
            assert!(loopback.contains("127.0.0.1") && onload.contains("EF_TCP_CLIENT_LOOPBACK"));
            assert!(shared.contains("CPU 1"));
        }
    }

    #[test]
    fn a_sound_log_has_no_doubts() {
        let log = |line: &str, row: &str| {
            let text = format!(
                "# cmdline: sfnt-pingpong {line}\n# size mean min median max %ile stddev iter\n{row}\n"
            );
            doubts(&parse(&text).unwrap()[0])
        };
        let row = "32 5000 4000 5000 9000 6000 100 300000";
        assert_eq!(log("--affinity 1;1 tcp 10.0.0.2", row), [""; 0]);
        assert_eq!(log("--spin pipe", row).len(), 1, "the default CPUs are 1 and 1");
        assert_eq!(log("--affinity 0;1 pipe", "32 5 4 5 9 6 1 1000000"), [""; 0]);
        let short = log("tcp 10.0.0.2", "32 5000 4000 5000 9000 6000 100 1000");
        assert!(short[0].contains("for size 32"), "{short:?}");
        assert_eq!(doubts(&SfntLog::default()).len(), 1);
    }
}
