use super::*;
use std::thread;

const CPUS: &str = "0-1";
const STAT: &str = "/proc/stat";

fn counters(files: &[(&str, &str)]) -> CpuCounters {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    CpuCounters::read(&Root::in_memory("test", files), &CpuSet::parse_list(CPUS).unwrap())
}

fn until(before: &[(&str, &str)], after: &[(&str, &str)]) -> CountersOfRun {
    counters(before).until(&counters(after), &CpuSet::parse_list(CPUS).unwrap())
}

fn texts(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

fn labels(run: &CountersOfRun, cpu: CpuId) -> Vec<String> {
    run.of(cpu).iter().map(|delta| format!("{} {}", delta.count, delta.cause.label())).collect()
}

const INTERRUPTS_BEFORE: &str = "            CPU0       CPU1       CPU3
  47:          9          0          1  IR-PCI-MSI-0000:01:00.0   1-edge      nvme0q3
  48:          5          5          0  IR-PCI-MSI-0000:01:00.0   2-edge      nvme0q4
  49: 4294967290          0          0  IR-PCI-MSI-0000:02:00.0   2-edge      eth0
 NMI:          1          2          3   Non-maskable interrupts
 LOC:     331149     333511          0   Local timer interrupts
 RTR:          0          0          0   APIC ICR read retries
 CAL:         10         20          0   Function call interrupts
 ERR:          3
";
const INTERRUPTS_AFTER: &str = "            CPU0       CPU1       CPU3
  47:         12          0          9  IR-PCI-MSI-0000:01:00.0   1-edge      nvme0q3
  48:          7          5          0  IR-PCI-MSI-0000:03:00.0   0-edge      eth1-rx
  49:          4          0          0  IR-PCI-MSI-0000:02:00.0   2-edge      eth0
 NMI:          1          2          3   Non-maskable interrupts
 LOC:     331249     333512          0   Local timer interrupts
 RTR:          9          0          0   APIC ICR read retries
 CAL:          4         25          0   Function call interrupts
 ERR:          9
";
const SOFTIRQS_BEFORE: &str =
    "                    CPU0       CPU1       CPU2\n         RCU:          7          0   1\n";
const SOFTIRQS_AFTER: &str =
    "                    CPU0       CPU1       CPU2\n         RCU:          9          0   5\n";

#[test]
fn increases_are_named_as_in_the_trace() {
    let stat = |steal: u32| {
        format!("cpu 0 0 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 {steal} 9\ncpu1 1 2 3 4 5 6 7 8 9\nintr 1\n")
    };
    let schedstat = |slices: u32| {
        format!(
            "version 17\ntimestamp 4295\ncpu0 1 0 3 4 5 6 7 8 {slices}\ndomain0 MC 3 1 2\ncpu1 1 0 3 4 5 6 7 8 9\n"
        )
    };
    let run = until(
        &[
            (INTERRUPTS, INTERRUPTS_BEFORE),
            (SOFTIRQS, SOFTIRQS_BEFORE),
            (STAT, &stat(8)),
            (SCHEDSTAT, &schedstat(100)),
        ],
        &[
            (INTERRUPTS, INTERRUPTS_AFTER),
            (SOFTIRQS, SOFTIRQS_AFTER),
            (STAT, &stat(11)),
            (SCHEDSTAT, &schedstat(141)),
        ],
    );
    assert_eq!(
        labels(&run, 0),
        [
            "100 local timer",
            "41 thread timeslices of any thread",
            "10 irq 49 eth0",
            "7 irq 48 eth1-rx",
            "4 call function",
            "3 irq 47 nvme0q3",
            "3 firmware or hypervisor steal time in clock ticks",
            "2 softirq RCU",
        ],
        "49 wrapped, 48 is another device's now"
    );
    assert_eq!(labels(&run, 1), ["5 irq 48 eth1-rx", "5 call function", "1 local timer"]);
    assert_eq!(
        texts(&run.doubts),
        ["Counters restarted during the run, so these counts are lower bounds: call function on CPU 0."]
    );
    assert!(run.of(3).is_empty(), "not requested");
}

#[test]
fn an_offline_cpu_is_reported() {
    let before = "   CPU0  CPU1\nLOC:  1  5  Local timer interrupts\n";
    let after = "   CPU0\nLOC:  3  Local timer interrupts\n";
    for (before, after) in [(before, after), (after, before)] {
        let run = until(
            &[(INTERRUPTS, before), (SOFTIRQS, "CPU0 CPU1\n")],
            &[(INTERRUPTS, after), (SOFTIRQS, "CPU0 CPU1\n")],
        );
        assert!(run.of(1).is_empty(), "{run:?}");
        assert!(
            run.doubts[0].to_string().starts_with("CPU 1 had no column in /proc/interrupts"),
            "{:?}",
            run.doubts
        );
    }
}

#[test]
fn unreadable_tables_are_reported_and_contradict_nothing() {
    let run = until(&[(INTERRUPTS, INTERRUPTS_BEFORE)], &[(INTERRUPTS, "junk")]);
    assert_eq!(run.doubts.len(), 2, "{:?}", run.doubts);
    assert!(
        run.doubts[0].to_string().contains("/proc/interrupts are unknown: unparsable"),
        "{:?}",
        run.doubts
    );
    assert!(run.doubts[1].to_string().contains("/proc/softirqs are unknown: absent"), "{:?}", run.doubts);
    let traced = [CauseTotal { cause: cause_of_softirq("RCU"), count: 9, ..CauseTotal::default() }];
    assert!(run.contradictions(0, &traced).is_empty());

    let tables = [(INTERRUPTS, INTERRUPTS_BEFORE), (SOFTIRQS, SOFTIRQS_BEFORE)];
    let run = until(&tables, &tables);
    assert!(run.doubts.is_empty() && run.of(0).is_empty(), "{run:?}");
    assert_eq!(
        texts(&run.contradictions(0, &traced)),
        ["CPU 0: The trace has 9 interruptions with softirq RCU, but the kernel counted 0 in the same time."]
    );
}

#[test]
fn junk_in_schedstat_costs_that_file_only() {
    let junk = counters(&[(SCHEDSTAT, "cpu0 1 2 3\n"), (SOFTIRQS, SOFTIRQS_BEFORE)]);
    assert!(matches!(junk.timeslices, Reading::Unparsable(_)));
    assert!(junk.softirqs.is_known());
}

#[test]
fn this_hosts_counters_increase() {
    let (root, cpus) = (Root::live(), lowlat_host_run::affinity::current().unwrap());
    let before = CpuCounters::read(&root, &cpus);
    thread::scope(|scope| {
        // A thread that sleeps and wakes causes reschedules or timers somewhere, whatever else the host does.
        scope.spawn(|| (0..20).for_each(|_| thread::sleep(std::time::Duration::from_millis(2))));
    });
    let run = before.until(&CpuCounters::read(&root, &cpus), &cpus);
    let moved: usize = cpus.iter().map(|cpu| run.of(cpu).len()).sum();
    assert!(moved > 0, "{run:?}");
}

proptest::proptest! {
    #[test]
    fn no_tables_panic(
        before in "(CPU[0-3] ){0,3}\n(\\PC{0,30}\n|([0-9]{1,3}|NMI): [0-9 ]{0,30}[\\PC,-]{0,20}\n){0,4}",
        after in "(CPU[0-3] ){0,3}\n(\\PC{0,30}\n|([0-9]{1,3}|NMI): [0-9 ]{0,30}[\\PC,-]{0,20}\n){0,4}",
    ) {
        let files = |text| [(INTERRUPTS, text), (SOFTIRQS, text), (SCHEDSTAT, text), (STAT, text)];
        let _ = until(&files(before.as_str()), &files(after.as_str()));
    }
}
