//! Nesting of the kernel's activities.

use lowlat_trace::Activity;

/// True if an activity can start while another runs. Softirqs wait until interrupts and earlier softirqs have
/// ended; timers and tasklets run in softirqs; work functions run in threads, and since Linux 6.9 also in
/// softirqs. So if one starts on top of something else, the end of that was missed.
pub(super) fn can_run_on(activity: Activity, below: Activity) -> bool {
    match activity {
        Activity::Softirq(_) => {
            matches!(
                below,
                Activity::Thread(_) | Activity::Work(_) | Activity::PageFault | Activity::Signal(_)
            )
        }
        Activity::Timer(_) => matches!(below, Activity::Softirq(_) | Activity::Thread(_)),
        Activity::Tasklet(_) => {
            matches!(below, Activity::Softirq(_) | Activity::Work(_) | Activity::Thread(_))
        }
        Activity::Work(_) => matches!(below, Activity::Thread(_) | Activity::Softirq(_)),
        _ => true,
    }
}

/// True if an activity without an end event ends when its thread starts the next such activity.
pub(super) fn gives_way_to(open: Activity, next: Activity) -> bool {
    match open {
        Activity::PageFault => true,
        // Its handler may fault, which does not end it.
        Activity::Signal(_) => matches!(next, Activity::Signal(_)),
        _ => false,
    }
}

/// True if an exit event without a name (value 0) ends this activity, because it is of the same kind.
pub(super) fn ends(exit: Activity, open: Activity) -> bool {
    !has_value(exit) && std::mem::discriminant(&exit) == std::mem::discriminant(&open)
}

/// True if its value identifies it within its kind. For softirqs and interrupts 0 is a valid number, but
/// also stands for an exit event without one.
pub(super) fn has_value(activity: Activity) -> bool {
    match activity {
        Activity::Irq(number) => number != 0,
        Activity::Softirq(number) => number != 0,
        _ => activity.function() != Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nameless_exit_ends_its_kind_only() {
        assert!(ends(Activity::Hrtimer(0), Activity::Hrtimer(7)));
        assert!(!ends(Activity::Hrtimer(8), Activity::Hrtimer(7)), "it names another");
        assert!(!ends(Activity::Timer(0), Activity::Hrtimer(7)));
        assert!(!ends(Activity::Thread(0), Activity::Thread(7)), "the idle task is a thread like others");
    }
}
