//! Time that the kernel takes from a real-time thread that never sleeps.

use lowlat_host::{CpuSet, kernel_version::KernelVersion};
use lowlat_host_run::Root;
use lowlat_jitter::Warning;

const RELEASE: &str = "/proc/sys/kernel/osrelease";
const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";
/// From this version on a deadline server for ordinary threads replaces the throttling (commit 5f6bd380c7bd,
/// "sched/rt: Remove default bandwidth control").
const FAIR_SERVER_SINCE: KernelVersion = KernelVersion::new(6, 12);

/// Warning about the effect of the kernel's throttling on the figures; `None` if it is off.
pub fn warning(root: &Root, measured: &CpuSet) -> Option<Warning> {
    let server = fair_server(root, measured);
    if let Some((cpus, runtime_ns, period_ns)) = server.lent {
        return Some(Warning::FairServer { cpus, runtime_ns, period_ns, directory: FAIR_SERVER });
    }
    if server.is_read {
        return None;
    }
    let version = root.read(RELEASE).into_known().and_then(|release| KernelVersion::parse(&release));
    if version.is_some_and(|version| version >= FAIR_SERVER_SINCE) {
        return Some(Warning::FairServerUnknown { directory: FAIR_SERVER });
    }
    bandwidth(root)
}

struct FairServer {
    /// The settings of all measured CPUs could be read.
    is_read: bool,
    /// Measured CPUs on which it is active, its maximum time and its period, in nanoseconds.
    lent: Option<(CpuSet, u64, u64)>,
}

fn fair_server(root: &Root, measured: &CpuSet) -> FairServer {
    let mut server = FairServer { is_read: true, lent: None };
    for cpu in measured.iter() {
        let ns = |name: &str| {
            root.read_as::<u64>(&format!("{FAIR_SERVER}/cpu{cpu}/{name}"), "nanoseconds such as 50000000")
        };
        match (ns("runtime").into_known(), ns("period").into_known()) {
            (Some(0), _) => {}
            (Some(runtime_ns), Some(period_ns)) => {
                let (cpus, ns_max, _) = server.lent.get_or_insert_with(|| (CpuSet::new(), 0, period_ns));
                cpus.insert(cpu);
                *ns_max = (*ns_max).max(runtime_ns);
            }
            _ => {
                server.is_read = false;
                break;
            }
        }
    }
    server
}

/// The throttling before the fair server: -1 is off, and so is a runtime of the whole period.
fn bandwidth(root: &Root) -> Option<Warning> {
    let runtime_us: i64 = root.read_as(RUNTIME, "microseconds or -1").into_known()?;
    let period_us: i64 = root.read_as(PERIOD, "microseconds").into_known()?;
    (runtime_us >= 0 && runtime_us < period_us).then_some(Warning::RealTimeThrottled {
        runtime_us,
        period_us,
        path: RUNTIME,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(files: &[(&str, &str)]) -> Option<String> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        let measured = CpuSet::parse_list("2-3").unwrap();
        warning(&Root::in_memory("host", files), &measured).map(|warning| warning.to_string())
    }

    #[test]
    fn older_kernels_throttle_by_bandwidth() {
        let on = |runtime| on(&[(RELEASE, "6.1.0-25-amd64\n"), (RUNTIME, runtime), (PERIOD, "1000000\n")]);
        let told = on("950000\n").unwrap();
        assert!(told.starts_with("The kernel stops real-time threads that have run for 950000 us"), "{told}");
        assert_eq!((on("-1\n"), on("1000000\n")), (None, None));
    }

    #[test]
    fn newer_kernels_throttle_by_the_fair_server() {
        let release = (RELEASE, "6.12.1\n");
        let server = |cpu, name| format!("{FAIR_SERVER}/cpu{cpu}/{name}");
        let both = |two: &str, three: &str| {
            on(&[
                release,
                (RUNTIME, "950000\n"),
                (PERIOD, "1000000\n"),
                (&server(2, "runtime"), two),
                (&server(2, "period"), "1000000000\n"),
                (&server(3, "runtime"), three),
                (&server(3, "period"), "1000000000\n"),
            ])
        };
        let told = both("0\n", "50000000\n").unwrap();
        assert!(told.starts_with("On CPU 3 the kernel gives up to 50 ms of each 1000 ms"), "{told}");
        assert_eq!(both("0\n", "0\n"), None);
        // Debugfs is missing or unreadable.
        let told = on(&[release, (RUNTIME, "950000\n"), (PERIOD, "1000000\n")]).unwrap();
        assert!(told.starts_with("Unless it was switched off"), "{told}");
    }

    #[test]
    fn an_unknown_throttling_causes_no_warning() {
        assert_eq!(on(&[]), None);
    }
}
