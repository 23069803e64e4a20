use super::*;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Profile, Role};
use lowlat_host_run::affinity;
use lowlat_jitter::{BusyThread, ReadinessState};
use lowlat_settings::Context;
use std::{cell::RefCell, fs, path::Path, process, sync::atomic::AtomicU32};

const CPUFREQ: &str = "sys/devices/system/cpu/cpu1/cpufreq";

fn put(dir: &Path, path: &str, text: &str) {
    let place = dir.join(path);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, text).unwrap();
}

fn audit_of(host: &HostSnapshot, allocation: &Allocation) -> Audit {
    let (role, profile) = (Role::default(), Profile::default());
    Audit::of(&Context { host, role: &role, allocation, profile, catalogue: CATALOGUE })
}

fn captured() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(at, "proc/loadavg", "0.02 0.40 1.30 1/467 12345\n");
    put(at, "proc/vmstat", "nr_free_pages 5\npswpin 7\npswpout 9\n");
    put(at, &format!("{CPUFREQ}/scaling_governor"), "performance\n");
    put(at, &format!("{CPUFREQ}/scaling_cur_freq"), "3700000\n");
    put(at, &format!("{CPUFREQ}/scaling_min_freq"), "<none>\n");
    put(at, &format!("{CPUFREQ}/scaling_max_freq"), "3700000\n");
    put(at, "proc/1/stat", "cut");
    dir
}

fn watch<'a>(root: &'a Root, host: &HostSnapshot) -> QuietWatch<'a> {
    let allocation =
        Allocation { housekeeping: CpuSet::of(0), isolated: CpuSet::of(1), ..Allocation::default() };
    let audit = audit_of(host, &allocation);
    let watch = QuietWatch::new(root, &CpuSet::parse_list("1-2").unwrap(), host, &allocation, &audit);
    QuietWatch { pause: Duration::from_millis(1), ..watch }
}

#[test]
fn a_check_gathers_the_facts() {
    let dir = captured();
    let root = Root::open(dir.path()).unwrap();
    let mut host = HostSnapshot::default();
    host.tasks.allowed_cpus = Reading::Known(CpuSet::of(0));
    let facts = watch(&root, &host).look();
    assert_eq!((facts.measured.to_list(), facts.housekeeping.to_list()), ("1-2".into(), "0".into()));
    assert_eq!(facts.load_average, Reading::Known([0.02, 0.40, 1.30]));
    assert_eq!(facts.swap, SwapFacts { in_pages: Reading::Known(0), out_pages: Reading::Known(0) });
    let [clock] = &facts.clocks[..] else { panic!("CPU 2 has no cpufreq: {facts:?}") };
    assert_eq!((clock.cpu, clock.governor.text()), (1, "performance"));
    assert_eq!(clock.khz, [Reading::Known(3_700_000), Reading::Known(3_700_000)]);
    assert!(matches!(clock.limits_khz[0], Reading::Unparsable(_)));
    assert_eq!(facts.own_cpus, Reading::Known(CpuSet::of(0)));
    assert_eq!(facts.busy.known().map(|busy| busy.measured_count), Some(0));
    assert_eq!(facts.profile.name, "trading");
    let points = judge_readiness(&facts);
    assert!(!points.iter().any(ReadinessPoint::blocks), "{points:?}");
}

#[test]
fn a_host_without_swap_and_without_its_counters_swaps_nothing() {
    let dir = captured();
    put(dir.path(), "proc/vmstat", "nr_free_pages 5\npswpin x\n");
    let root = Root::open(dir.path()).unwrap();
    let mut host = HostSnapshot::default();
    let swap = watch(&root, &host).look().swap;
    assert!(matches!(swap.in_pages, Reading::Unparsable(_)));
    assert!(swap.out_pages.is_absent());
    host.memory.swaps = Reading::Known(Vec::new());
    assert_eq!(watch(&root, &host).look().swap.out_pages, Reading::Known(0));
    fs::remove_file(dir.path().join("proc/vmstat")).unwrap();
    assert!(watch(&root, &host).look().swap.out_pages.is_absent(), "nothing was checked");
}

fn points(is_quiet: bool) -> Vec<ReadinessPoint> {
    let state = if is_quiet { ReadinessState::Ready } else { ReadinessState::NotReady };
    vec![
        ReadinessPoint {
            id: "governor".into(),
            state: ReadinessState::NotReady,
            ..ReadinessPoint::default()
        },
        ReadinessPoint { id: "load".into(), state, is_blocking: true, ..ReadinessPoint::default() },
    ]
}

#[test]
fn waiting_ends_with_quiet_and_reports_each_check() {
    let (mut looks, told) = (0, RefCell::new(Vec::new()));
    let mut look = || {
        looks += 1;
        points(looks == 3)
    };
    let on_look = |points: &[ReadinessPoint]| told.borrow_mut().push(points[1].state);
    let last = wait_until_quiet(&mut look, Duration::from_millis(1), &AtomicBool::new(false), &on_look);
    let (busy, quiet) = (ReadinessState::NotReady, ReadinessState::Ready);
    assert_eq!(told.into_inner(), [busy, busy, quiet]);
    assert!(!last.iter().any(ReadinessPoint::blocks));
}

#[test]
fn waiting_ends_when_stopped() {
    let stop = AtomicBool::new(false);
    let on_look = |_: &[ReadinessPoint]| stop.store(true, Ordering::Relaxed);
    let last = wait_until_quiet(&mut || points(false), Duration::from_secs(3_600), &stop, &on_look);
    assert!(last.iter().any(ReadinessPoint::blocks));
}

/// A separate process that spins on one CPU, killed on drop.
struct Spinner(process::Child);

impl Spinner {
    fn on(cpu: CpuId) -> Option<Self> {
        let was = affinity::current().ok()?;
        affinity::pin_to(&CpuSet::of(cpu)).ok()?;
        let child = process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().ok();
        affinity::pin_to(&was).unwrap();
        child.map(Self)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn find(facts: &ReadinessFacts, pid: i32) -> Option<BusyThread> {
    let busy = facts.busy.known()?;
    busy.measured.iter().find(|thread| thread.pid == pid).cloned()
}

#[test]
fn a_spinning_process_on_a_measured_cpu_is_named_and_our_threads_are_not() {
    let cpu = affinity::current().unwrap().highest().unwrap();
    let Some(spinner) = Spinner::on(cpu) else {
        eprintln!("skipped: a_spinning_process_on_a_measured_cpu_is_named: no shell to spin in");
        return;
    };
    let (root, host) = (Root::live(), HostSnapshot::default());
    let allocation = Allocation::default();
    let audit = audit_of(&host, &allocation);
    let watch = QuietWatch::new(&root, &CpuSet::of(cpu), &host, &allocation, &audit);
    let (is_over, turns) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            affinity::pin_to(&CpuSet::of(cpu)).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                turns.fetch_add(1, Ordering::Relaxed);
            }
        });
        // On a busy machine the shell may have to wait for its turn.
        let named = (0..20).find_map(|_| {
            let facts = watch.look();
            let own_pid = i32::try_from(process::id()).unwrap();
            assert_eq!(find(&facts, own_pid), None, "this process is not named");
            find(&facts, spinner.pid()).map(|thread| (thread, facts))
        });
        is_over.store(true, Ordering::Relaxed);
        let (thread, facts) = named.expect("the shell spins");
        assert_eq!((thread.comm.as_str(), thread.cpu, thread.is_kernel), ("sh", cpu, false));
        assert!(thread.used_ms > 0);
        let points = judge_readiness(&facts);
        let busy = points.iter().find(|point| point.id == "busy_threads").unwrap();
        assert!(busy.blocks());
        assert!(busy.observed.contains(&format!("(pid {}, CPU {cpu}, ", spinner.pid())), "{busy:?}");
    });
}
