//! Interrupts: the CPUs that they really go to, and the programs that move them.

use super::*;
use lowlat_host::snapshot::{InterruptFacts, Irq};

fn set(case: Case, asked: &str, goes: &str) -> Case {
    case.with(|case| {
        for irq in &mut case.bench.host.interrupts.irqs {
            irq.affinity = Reading::Known(list(asked));
            irq.effective_affinity = Reading::Known(list(goes));
        }
    })
}

fn case() -> Case {
    Case::new(Bench::trading().irq(40, "eth0-rx-0", "0", Reading::Known(false))).irq(40, "eth0-rx-0", "0,8")
}

/// The same interrupts a while later.
fn later(case: Case, change: impl FnOnce(&mut Irq)) -> Case {
    case.with(|case| {
        let mut later: InterruptFacts = case.bench.host.interrupts.clone();
        change(&mut later.irqs[0]);
        case.evidence.interrupts_later = Some(later);
    })
}

const WHAT: &str = "IRQ 40 eth0-rx-0";
const ALL: &str = "movable interrupts";

#[test]
fn an_interrupt_asked_to_move_does_so_at_its_next_interrupt() {
    let case = set(case(), "0,8", "5");
    case.says(WHAT, Standing::MovesLater, &["moves at its next interrupt"]);
    let all = case.says(ALL, Standing::MovesLater, &["0 of 1 inside"]);
    assert!(!all.standing.is_fault());
    assert_eq!(case.verify().outcome(), super::super::Outcome::Held);
}

#[test]
fn one_that_fired_and_stays_is_ineffective() {
    let asked = set(case(), "0,8", "5");
    let fired = later(asked, |irq| {
        irq.count_by_cpu.insert(5, 7);
    });
    fired.says(WHAT, Standing::Ineffective, &["since fired 7 times on CPU 5", "still goes to CPU 5"]);
    fired.says(ALL, Standing::Ineffective, &["outside: 40 eth0-rx-0"]);
    let quiet = later(set(case(), "0,8", "5"), |_| {});
    quiet.says(WHAT, Standing::MovesLater, &[]);
    let moved = later(set(case(), "0,8", "5"), |irq| irq.effective_affinity = Reading::Known(list("8")));
    moved.says(WHAT, Standing::Held, &["8"]);
    let just_asked = later(set(case(), "5", "5"), |irq| {
        irq.affinity = Reading::Known(list("0,8"));
        irq.count_by_cpu.insert(5, 7);
    });
    just_asked.says(WHAT, Standing::MovesLater, &[]);
}

#[test]
fn irqbalance_is_blamed_where_its_ban_list_leaves_the_cpus_to_it() {
    let with_irqbalance = |banned: Option<&str>| {
        let case = set(case(), "5", "5");
        let case = Case { bench: case.bench.unit("irqbalance.service", "active"), ..case };
        case.with(|case| {
            case.bench.host.services.irqbalance.banned_cpus =
                banned.map_or(Reading::Absent, |cpus| Reading::Known(list(cpus)));
        })
    };
    with_irqbalance(None).says(WHAT, Standing::Overridden, &["irqbalance.service", "without a ban list"]);
    with_irqbalance(Some("9-15")).says(
        WHAT,
        Standing::Overridden,
        &["irqbalance.service", "does not include CPUs 1-7"],
    );
    with_irqbalance(Some("9-15")).says(ALL, Standing::Overridden, &["irqbalance.service", "40 eth0-rx-0"]);
    with_irqbalance(Some("1-7,9-15")).says(
        WHAT,
        Standing::Overridden,
        &["unknown", "/proc/irq/40/smp_affinity"],
    );
    // Without a configured ban list it leaves out isolated CPUs.
    let by_itself = with_irqbalance(None)
        .with(|case| case.bench.host.topology.isolated = Reading::Known(list("1-7,9-15")));
    by_itself.says(WHAT, Standing::Overridden, &["unknown"]);
}

#[test]
fn a_managed_interrupt_refuses_to_be_moved() {
    let bench = Bench::trading().irq(50, "nvme0q3", "3", Reading::Known(true)).irq(
        51,
        "nvme0q4",
        "0",
        Reading::Known(true),
    );
    let case = Case::new(bench).irq(50, "nvme0q3", "0,8");
    case.says("IRQ 50 nvme0q3", Standing::Ineffective, &["EIO", "managed_irq"]);
    let headline = case.verify().headline;
    assert_eq!((headline.irqs_movable, headline.irqs_managed, headline.irqs_managed_on_isolated), (0, 2, 1));
}

#[test]
fn interrupts_are_found_by_name_when_their_numbers_have_changed() {
    let bench = Bench::trading()
        .irq(70, "edge", "0", Reading::Known(false))
        .irq(71, "edge", "5", Reading::Known(false))
        .irq(40, "other", "8", Reading::Known(false));
    let case = Case::new(bench).irq(40, "edge", "0,8").irq(41, "edge", "0,8").irq(42, "gone", "0,8");
    case.says("IRQ 70 edge", Standing::Held, &[]);
    case.says("IRQ 71 edge", Standing::Overridden, &[]);
    case.says("IRQ gone", Standing::Gone, &[]);
}

#[test]
fn a_kernel_without_effective_affinities_is_taken_by_what_was_asked() {
    let case = set(case(), "0,8", "0").with(|case| {
        case.bench.host.interrupts.irqs[0].effective_affinity = Reading::Absent;
    });
    case.says(WHAT, Standing::Held, &["0,8"]);
    case.says(ALL, Standing::Held, &["1 of 1 inside"]);
    let unread = case.with(|case| case.bench.host.interrupts.irqs[0].affinity = Reading::Denied);
    unread.says(WHAT, Standing::Unreadable, &["as root"]);
    unread.says(ALL, Standing::Unreadable, &[]);
}
