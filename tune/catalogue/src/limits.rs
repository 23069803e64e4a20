//! Limits of user processes: locked memory, real-time priority, and core dumps.

use lowlat_host::Reading;
use lowlat_settings::{Context, Judgement, Layer, Setting, Want, judge};

const LIMITS: &str = "/etc/security/limits.conf";
const MORE_LIMITS: &str = "/etc/security/limits.d/*.conf";
const PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// A limit of users, by its name in limits.conf(5).
const LIMIT: Setting = Setting {
    layer: Layer::Service,
    reads: &[LIMITS, MORE_LIMITS],
    sources: &["limits.conf(5)", "systemd.exec(5): LimitMEMLOCK=, LimitRTPRIO="],
    ..Setting::BLANK
};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        id: "service.limits.memlock",
        not_planned: "which user trades is unknown: add \"USER - memlock unlimited\" to a file in \
                      /etc/security/limits.d, or LimitMEMLOCK=infinity to the unit",
        name: "memlock",
        reason: "A user other than root can lock only so much memory. mlockall of a larger program fails, and its pages can \
                 be moved or swapped out.",
        effective: "`ulimit -l` in the trading user's shell prints unlimited.",
        trading: Want::State("unlimited for the user that trades"),
        judge: |context, _| limit(context, "memlock", "LimitMEMLOCK=infinity", |value| value == u64::MAX),
        ..LIMIT
    },
    Setting {
        id: "service.limits.rtprio",
        not_planned: "which user trades is unknown: add \"USER - rtprio 99\" to a file in /etc/security/limits.d, or \
                      LimitRTPRIO=99 to the unit",
        name: "rtprio",
        reason: "A user other than root cannot give a thread SCHED_FIFO with a priority above this limit. The default is \
                 0: none.",
        effective: "`ulimit -r` in the trading user's shell prints the priority.",
        trading: Want::State("1 or more for the user that trades"),
        judge: |context, _| limit(context, "rtprio", "LimitRTPRIO=99", |value| value >= 1),
        ..LIMIT
    },
    Setting {
        id: "sysctl.kernel.core_pattern",
        not_planned: "set ProcessSizeMax= in /etc/systemd/coredump.conf, or LimitCORE=0 for the trading processes",
        layer: Layer::Sysctl,
        name: "kernel.core_pattern",
        reason: "A crash handler reads all memory of the process that crashed and compresses it. With gigabytes of huge \
                 pages that takes minutes of a housekeeping CPU and of the disk, before the process can start again.",
        effective: "`coredumpctl info` of a test process shows no dump, or one of limited size.",
        reads: &[PATTERN],
        trading: Want::State("no handler that reads all of a crashed process"),
        sources: &["core(5)", "coredump.conf(5)", "Seastar perftune.py"],
        judge: core_pattern,
        ..Setting::BLANK
    },
];

/// Parses a value of limits.conf(5).
fn value(text: &str) -> Option<u64> {
    match text {
        "unlimited" | "infinity" | "-1" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// The hard limits of an item in a file.
fn hard_limits(text: &str, item: &str) -> Vec<u64> {
    let limit = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        let [domain, kind, name, limit] = words[..] else { return None };
        let is_meant = !domain.starts_with('#') && matches!(kind, "hard" | "-") && name == item;
        if is_meant { value(limit) } else { None }
    };
    text.lines().filter_map(limit).collect()
}

/// Good if some user's limit is high enough, wrong if all limits are lower. Units have separate limits, which are not
/// read.
fn limit(context: &Context<'_>, item: &str, unit: &str, is_enough: fn(u64) -> bool) -> Judgement {
    let denied = context.host.file(LIMITS);
    if denied == Reading::Denied {
        return judge::missing(&denied, LIMITS);
    }
    let files = [LIMITS, MORE_LIMITS].into_iter().flat_map(|glob| context.host.files_matching(glob));
    let found: Vec<(&str, u64)> = files
        .flat_map(|(path, text)| hard_limits(text.text(), item).into_iter().map(move |found| (path, found)))
        .collect();
    let shown = |limit: u64| if limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() };
    match (found.iter().find(|(_, limit)| is_enough(*limit)), found.first()) {
        (Some((path, limit)), _) => Judgement::good(shown(*limit)).at(*path),
        (None, Some((path, limit))) => {
            Judgement::wrong(shown(*limit), format!("not enough; a service needs {unit} in its unit instead")).at(*path)
        }
        (None, None) => Judgement::unknown(format!(
            "no file of limits has {item}, so users have the kernel's default; a service needs {unit} in its unit"
        ))
        .at(LIMITS),
    }
}

fn core_pattern(context: &Context<'_>, _: &Setting) -> Judgement {
    judge::known(&context.host.file(PATTERN), PATTERN, |pattern| {
        match pattern.strip_prefix('|').and_then(|command| command.split_whitespace().next()) {
            Some(handler) => Judgement::wrong(handler, ""),
            None => {
                judge::good_because("no handler", "the kernel writes a file if the process's limit allows it")
            }
        }
    })
}
