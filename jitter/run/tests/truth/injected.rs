//! Interruptions of the measured CPU, the names that they get, and what the remedy says: each row injects one thing.

use crate::truth::host::{Raise, become_fifo, ground, is_traced, observe, options};
use lowlat_host::{Allocation, CpuId, CpuSet, HostSnapshot, Role, snapshot::Nic};
use lowlat_host_run::Root;
use lowlat_host_run::affinity;
use lowlat_jitter::{CauseKind, CauseStudy, JitterRecord, RemedyContext, study_with};
use lowlat_jitter_run::jitter::{JitterOptions, RealTime, RealTimePolicy};
use std::{
    net::UdpSocket,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

const RUN: Duration = Duration::from_millis(800);
const PAUSE: Duration = Duration::from_millis(2);

struct Row {
    name: &'static str,
    /// Injects until the process is ended; the CPUs are the measured one and another.
    inject: fn(CpuId, CpuId),
    /// The causes by which it is found: kind, start of the name, setting and a piece of the action.
    found: &'static [(CauseKind, &'static str, &'static str, &'static str)],
}

/// Name of the thread that moves another.
const MOVER: &str = "lowlat-mover";

const ROWS: &[Row] = &[
    Row {
        name: "a thread with its own affinity, and the timer of its sleep",
        inject: |cpu, _| wakes_on(cpu, spin),
        found: &[
            (CauseKind::Thread, "lowlat-inject", "sysfs.cpuset.partition", "because of its own affinity"),
            (
                CauseKind::Vector,
                "local timer (hrtimer_wakeup)",
                "boot.isolcpus",
                "a thread that sleeps on a timer is woken here",
            ),
        ],
    },
    Row {
        name: "packets to this host",
        inject: |cpu, _| {
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            receiver.set_nonblocking(true).unwrap();
            let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
            sender.connect(receiver.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 64];
            wakes_on(cpu, || {
                (0..20).for_each(|_| drop(sender.send(&[1; 32])));
                while receiver.recv(&mut buffer).is_ok() {}
            });
        },
        found: &[(CauseKind::Softirq, "NET_RX", "", "so a thread there sends to this host")],
    },
    Row {
        name: "a thread moved away by another",
        inject: moves,
        found: &[(CauseKind::Thread, "migration/", "", MOVER)],
    },
    Row {
        name: "a thread of the deadline class",
        inject: deadline,
        found: &[(CauseKind::Hrtimer, "inactive_task_timer", "", "lowlat-inject is SCHED_DEADLINE")],
    },
];

fn spin() {
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_micros(200) {
        std::hint::spin_loop();
    }
}

/// Runs real-time on a CPU for a moment, again and again. Without the right to, an ordinary thread does.
fn wakes_on(cpu: CpuId, mut work: impl FnMut()) {
    affinity::pin_to(&CpuSet::of(cpu)).unwrap();
    become_fifo();
    loop {
        work();
        thread::sleep(PAUSE);
    }
}

/// A thread that wants the measured CPU is sent to the other one while it runs there.
fn moves(cpu: CpuId, other: CpuId) {
    // SAFETY: takes no argument.
    let victim = unsafe { libc::gettid() };
    let mover = thread::Builder::new().name(MOVER.into());
    let moving = mover.spawn(move || {
        affinity::pin_to(&CpuSet::of(other)).unwrap();
        let mut mask = [0_u64; 16];
        mask[other as usize / 64] = 1 << (other % 64);
        loop {
            thread::sleep(PAUSE);
            // SAFETY: the mask is alive during the call, which reads as many bytes as the length says.
            unsafe { libc::syscall(libc::SYS_sched_setaffinity, victim, size_of_val(&mask), mask.as_ptr()) };
        }
    });
    moving.unwrap();
    wakes_on(cpu, || {
        // The mover may be faster.
        let _ = affinity::pin_to(&CpuSet::of(cpu));
        (0..5).for_each(|_| spin());
    });
}

/// A thread of the deadline class, which may run anywhere.
fn deadline(_: CpuId, _: CpuId) {
    // SAFETY: takes no argument.
    let thread = unsafe { libc::gettid() }.to_string();
    let class = ["--pid", "-d", "-T", "300000", "-D", "3000000", "-P", "3000000", "0", &thread];
    assert!(Command::new("chrt").args(class).status().unwrap().success());
    loop {
        spin();
        thread::sleep(PAUSE);
    }
}

/// Row, measured CPU and other CPU of the child.
const CHILD: &str = "LOWLAT_TRUTH_INJECTS";

/// The child: its threads are no longer those of the process that measures.
#[test]
#[ignore = "part of the other test"]
fn injects_for_the_other_test() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let numbers: Vec<u32> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    let row = &ROWS[numbers[0] as usize];
    let injecting = thread::Builder::new().name("lowlat-inject".into());
    injecting.spawn(move || (row.inject)(numbers[1], numbers[2])).unwrap().join().unwrap();
}

/// A run beside the injection; `None` if that ended, because it is not permitted.
fn measured(cpu: CpuId, other: CpuId, row: usize, wake_every: Option<Duration>) -> Option<JitterRecord> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "truth::injected::injects_for_the_other_test", "--ignored"]);
    command.env(CHILD, format!("{row} {cpu} {other}")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut injecting = Injecting(command.spawn().unwrap());
    let record = observe(&JitterOptions { wake_every, ..options(cpu, RUN) }, true);
    injecting.0.try_wait().unwrap().is_none().then_some(record)
}

/// The child, which ends with this: it would take the CPU from other tests for ever.
struct Injecting(Child);

impl Drop for Injecting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_injected_is_named_and_has_its_own_remedy() {
    let Some(ground) = ground() else { return };
    let allowed = affinity::current().unwrap();
    let other = allowed.iter().find(|cpu| *cpu != ground.cpu).unwrap();
    let mut host = HostSnapshot::default();
    host.topology.online = allowed;
    // It has one, which never interrupts.
    host.nics.push(Nic { irqs: vec![u32::MAX], ..Nic::default() });
    let allocation = Allocation {
        housekeeping: CpuSet::of(other),
        isolated: CpuSet::of(ground.cpu),
        ..Allocation::default()
    };
    let context = RemedyContext { host: &host, allocation: &allocation, role: &Role::default() };
    for (place, row) in ROWS.iter().enumerate() {
        let Some(record) = measured(ground.cpu, other, place, None) else {
            eprintln!("skipped: {}: not permitted here", row.name);
            continue;
        };
        if !is_traced(&record) {
            return;
        }
        let study = study_with(&record, Some(&context)).unwrap();
        if !study.causes.iter().any(|of| of.cause.name == "lowlat-inject") {
            eprintln!("skipped: {}: it did not run on the measured CPU", row.name);
            continue;
        }
        for (kind, start, setting, action) in row.found {
            let is_meant = |of: &&CauseStudy| of.cause.kind == *kind && of.cause.name.starts_with(start);
            let Some(found) = study.causes.iter().find(is_meant) else {
                let all: Vec<String> = study.causes.iter().map(|of| of.cause.label()).collect();
                panic!("{}: {start} is not among {all:?}", row.name);
            };
            let remedy = found.remedy.as_ref().unwrap();
            let label = found.cause.label();
            eprintln!("{label}, {} times -> {} {}", found.count, remedy.setting, remedy.action);
            let has_senders = record.causes.as_ref().is_some_and(|causes| causes.senders.is_some());
            if *action == MOVER && !has_senders {
                eprintln!("skipped: {}: this kernel does not trace who sends interrupts", row.name);
                continue;
            }
            assert_eq!(remedy.setting, *setting, "{}: {}", row.name, remedy.action);
            assert!(remedy.action.contains(action), "{}: {}", row.name, remedy.action);
        }
    }
}

/// A timer wakes the measured thread while another has the CPU.
#[test]
fn a_wake_up_is_delayed_by_who_has_the_cpu() {
    let Some(ground) = ground() else { return };
    let other = affinity::current().unwrap().iter().find(|cpu| *cpu != ground.cpu).unwrap();
    let every = Duration::from_micros(1_900);
    let record = measured(ground.cpu, other, 0, Some(every)).expect("the injection needs no right");
    let cpu = &record.cpus[0];
    // The last one ends the run.
    let due = RUN.as_micros() / every.as_micros() + 1;
    // A busy machine skips some.
    assert!(
        cpu.interruption_count > 20 && u128::from(cpu.interruption_count) <= due,
        "{} of {due}",
        cpu.interruption_count
    );
    assert_eq!((record.wake_every_ns, cpu.loop_count), (Some(1_900_000), cpu.interruption_count));
    if !is_traced(&record) {
        return;
    }
    let study = study_with(&record, None).unwrap();
    let total = |name: &str| -> u64 {
        study.causes.iter().filter(|of| of.cause.name.starts_with(name)).map(|of| of.count).sum()
    };
    // Each has its own timer; the other thread, which spins for a tenth of the time, met some.
    let (timers, threads) = (total("local timer (hrtimer_wakeup)"), total("lowlat-inject"));
    eprintln!("{} wake-ups, {timers} timers, {threads} delayed by the thread", cpu.interruption_count);
    assert!(timers * 2 > cpu.interruption_count && threads > 0, "{:#?}", study.causes);
}

/// A real-time sampler is held back so that an ordinary thread runs, which the host does not do to a sleeping program.
#[test]
fn what_a_real_time_sampler_causes_is_in_no_figure_of_the_cpu() {
    let Some(ground) = ground() else { return };
    let is_over = AtomicBool::new(false);
    let real_time = Some(RealTime { policy: RealTimePolicy::Fifo, priority: 5 });
    // The kernel gives an ordinary thread its time after it has waited for a second.
    let options = JitterOptions { real_time, ..options(ground.cpu, 3 * RUN) };
    if options.check(&Root::live()).is_err() {
        eprintln!("skipped: real-time samplers are not permitted");
        return;
    }
    let record = thread::scope(|scope| {
        scope.spawn(|| {
            let _ = affinity::pin_to(&CpuSet::of(ground.cpu));
            // Relaxed: only ends the loop.
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let _raise = Raise(&is_over);
        observe(&options, true)
    });
    let (cpu, causes) = (&record.cpus[0], record.causes.as_ref().unwrap());
    let Some(own) = causes.cpus.first().and_then(|cpu| cpu.own_holds.as_ref()) else {
        eprintln!("skipped: nothing held the sampler back, or nothing was traced");
        return;
    };
    eprintln!(
        "{} times, {} ms beside {} interruptions",
        own.count,
        own.ns_total / 1_000_000,
        cpu.interruption_count
    );
    assert_eq!(cpu.interruption_count + own.count, causes.cpus[0].attributed_count);
    assert_eq!(cpu.interruption_ns_max, own.others_ns_max);
    assert!(record.warnings.iter().any(|warning| warning.contains("held back the real-time samplers")));
}
