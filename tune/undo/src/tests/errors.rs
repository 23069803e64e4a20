//! One failing operation, at each place, in both directions. Whatever a rollback reports as complete is complete,
//! including empty directories and their modes.

use super::{super::*, Host};
use rustix::io::Errno;

const ERRORS: [Errno; 2] = [Errno::IO, Errno::PERM];

/// Applies with `apply`, rolls back with `back`, then without faults. Returns whether each got past its fault.
fn case(apply: &Faults, back: &Faults, what: &str) {
    let host = Host::new();
    let (start, plan) = (host.tree(true), host.plan());
    if let Ok(mut log) = host.open(apply.clone()) {
        let _ = log.apply("p", &plan, OnFailure::RollBack);
    }
    if let Ok(mut log) = host.open(back.clone()) {
        let report = log.rollback_where(|_| true);
        if report.is_complete() {
            assert_eq!(host.tree(true), start, "{what}: reported as complete: {report}");
        }
    }
    let report = host.open(Faults::none()).unwrap().rollback_where(|_| true);
    assert!(report.is_complete(), "{what}: {report}");
    assert_eq!(host.tree(true), start, "{what}");
}

#[test]
fn an_error_anywhere_in_apply_leaves_nothing_behind() {
    for error in ERRORS {
        for at in 0.. {
            let faults = Faults::error_at(at, error.raw_os_error());
            case(&faults, &Faults::none(), &format!("{error} at {at} of apply"));
            if faults.count() <= at {
                assert!(at > 60, "only {at} operations");
                break;
            }
        }
    }
}

#[test]
fn an_error_anywhere_in_rollback_leaves_nothing_behind() {
    for error in ERRORS {
        for at in 0.. {
            let faults = Faults::error_at(at, error.raw_os_error());
            case(&Faults::none(), &faults, &format!("{error} at {at} of rollback"));
            if faults.count() <= at {
                assert!(at > 30, "only {at} operations");
                break;
            }
        }
    }
}

/// An apply that fails and cannot roll back everything, then a rollback that fails too.
#[test]
fn errors_in_both_leave_nothing_behind() {
    let errno = Errno::PERM.raw_os_error();
    for apply in (0..200).step_by(13) {
        for back in (0..60).step_by(3) {
            let faults = (Faults::full_from(apply), Faults::error_at(back, errno));
            case(&faults.0, &faults.1, &format!("full from {apply} of apply, EPERM at {back} of rollback"));
        }
    }
}
