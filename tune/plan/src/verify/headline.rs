//! The first rows: isolated CPUs, CPUs without a tick, and interrupts.

use super::judge::{Scene, culprit_of, unreadable};
use super::{Headline, Row, Standing, culprit, irq};
use crate::{Plan, partition};
use lowlat_host::{CpuSet, Reading, snapshot::Irq};
use lowlat_settings::{
    change::{Target, WhyLeftOut},
    judge::first_of,
};

const LAYER: &str = "headline";
/// Maximum number of interrupts in a note.
const NAMED_MAX: usize = 6;

/// True if the plan relies on a boot parameter: it sets it, found it set, or forms a partition instead.
pub(super) fn expects(plan: &Plan, setting: &str) -> bool {
    let is_set = plan.changes.iter().any(|change| {
        matches!(&change.target, Target::CommandLine { tokens }
            if tokens.iter().any(|token| token.setting == setting && token.value.is_some()))
    });
    let is_replaced = setting == partition::REPLACES && plan.changes.iter().any(partition::is_partition);
    is_set
        || is_replaced
        || plan.left_out.iter().any(|left| left.setting == setting && left.why == WhyLeftOut::Good)
}

/// The figures, and a row for each that the plan relies on. `changes` are the rows of the plan's changes.
pub(super) fn of(scene: &Scene<'_>, changes: &[Row]) -> (Headline, Vec<Row>) {
    let mut headline = Headline {
        isolated: isolated(scene),
        nohz_full: scene.host.topology.nohz_full.clone(),
        ..Headline::default()
    };
    let mut rows = Vec::new();
    let sets = [
        ("boot.isolcpus", "isolated CPUs", &headline.isolated),
        ("boot.nohz_full", "CPUs without a tick (nohz_full)", &headline.nohz_full),
    ];
    for (setting, what, cpus) in sets {
        if expects(scene.plan, setting) && !scene.plan.isolated.is_empty() {
            rows.push(of_set(scene, setting, what, cpus, changes));
        }
    }
    // A plan of some settings, such as those of caches, moves none.
    let Plan { changes: planned, left_out, .. } = scene.plan;
    let is_moving = planned.is_empty()
        || planned.iter().any(|change| matches!(change.target, Target::IrqAffinity { .. }))
        || left_out.iter().any(|left| left.setting.starts_with("irq."));
    if is_moving && !scene.host.interrupts.irqs.is_empty() && !scene.plan.isolated.is_empty() {
        rows.push(of_irqs(scene, &mut headline));
    }
    (headline, rows)
}

/// The CPUs that the scheduler avoids, by the command line or by a partition.
fn isolated(scene: &Scene<'_>) -> Reading<CpuSet> {
    let partitions = scene.host.services.cpuset_partitions.iter();
    let held = partitions
        .filter(|partition| partition.is_isolated())
        .filter_map(|partition| partition.cpus.known())
        .fold(CpuSet::new(), |held, cpus| held.union(cpus));
    match &scene.host.topology.isolated {
        Reading::Known(cpus) => Reading::Known(cpus.union(&held)),
        _ if !held.is_empty() => Reading::Known(held),
        other => other.clone(),
    }
}

/// Compares a set of the kernel with the plan's; if it differs, the row of its parameter has the reason.
fn of_set(scene: &Scene<'_>, setting: &str, what: &str, cpus: &Reading<CpuSet>, changes: &[Row]) -> Row {
    let planned = &scene.plan.isolated;
    let observed = cpus.clone().map(|cpus| cpus.to_list());
    let row = Row::of_host(LAYER, what, planned.to_list(), observed, Some(setting));
    let Reading::Known(cpus) = cpus else {
        let note = unreadable(cpus);
        return Row { standing: Standing::Unreadable, note, ..row };
    };
    if scene.same_cpus(cpus, planned) {
        return row;
    }
    let name = setting.strip_prefix("boot.").unwrap_or(setting);
    let is_of_token = |other: &&Row| {
        other.settings.first().is_some_and(|first| first == setting) && other.what.starts_with(name)
    };
    match changes.iter().find(is_of_token) {
        Some(token) if token.standing != Standing::Held => {
            Row { standing: token.standing, by: token.by.clone(), note: token.note.clone(), ..row }
        }
        Some(_) => Row {
            standing: Standing::Ineffective,
            note: format!("{name}= is on the command line as planned, but the kernel shows another set"),
            ..row
        },
        None => Row {
            standing: Standing::Lost,
            note: format!("{name}= was set when the plan was made, and no longer is"),
            ..row
        },
    }
}

/// The row of interrupts: every movable one with a handler must stay on housekeeping CPUs.
fn of_irqs(scene: &Scene<'_>, headline: &mut Headline) -> Row {
    let house = &scene.plan.housekeeping;
    let mut outside: Vec<(&Irq, irq::Where)> = Vec::new();
    for found in scene.host.interrupts.irqs.iter().filter(|irq| !irq.actions.is_empty()) {
        let now = irq::latest(scene, found);
        if now.counts_as_managed() {
            headline.irqs_managed += 1;
            let reaches = now.goes_to().known().is_some_and(|cpus| !cpus.is_disjoint(&scene.plan.isolated));
            headline.irqs_managed_on_isolated += u32::from(reaches);
            continue;
        }
        headline.irqs_movable += 1;
        // The actual CPUs decide here; the row of the change shows the requested ones.
        if irq::goes_inside(scene, now, house) {
            headline.irqs_inside += 1;
            continue;
        }
        match irq::stands(scene, found, house) {
            irq::Where::Inside => headline.irqs_inside += 1,
            irq::Where::Moves => headline.irqs_moving += 1,
            other => outside.push((now, other)),
        }
    }
    let observed = Reading::Known(format!("{} of {} inside", headline.irqs_inside, headline.irqs_movable));
    let planned = format!("all inside {house}");
    let row = Row::of_host(LAYER, "movable interrupts", planned, observed, Some("irq.affinity"));
    if outside.is_empty() {
        let standing = if headline.irqs_moving > 0 { Standing::MovesLater } else { Standing::Held };
        let note = match headline.irqs_moving {
            0 => String::new(),
            count => format!("{count} will move at their next interrupt"),
        };
        return Row { standing, note, ..row };
    }
    let named: Vec<String> = outside.iter().map(|(irq, _)| irq.label()).collect();
    let note = format!("outside: {}", first_of(&named, NAMED_MAX, [", ", ", "]));
    let asked = outside.iter().find_map(|(_, place)| match place {
        irq::Where::AskedElsewhere(asked) => Some(asked),
        _ => None,
    });
    let is_unread = outside.iter().all(|(_, place)| *place == irq::Where::Unread);
    let by = asked.and_then(|asked| culprit_of(&culprit::of_irq(scene, Some(asked)), &asked.to_list()));
    let standing = match asked {
        Some(_) if by.is_some() => Standing::Overridden,
        Some(_) => Standing::Lost,
        None if is_unread => Standing::Unreadable,
        None => Standing::Ineffective,
    };
    Row { standing, by, note, ..row }
}
