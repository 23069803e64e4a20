//! Affinity of threads, for CPU numbers of any size.
//!
//! The C library's `cpu_set_t` ends at 1,024 CPUs, so the system calls are used directly with masks of any
//! length.

use lowlat_host::{CPU_ID_MAX, CpuSet};
use std::{ffi::c_ulong, io, thread};
use thiserror::Error;

/// Bits in a word of the kernel's masks.
const WORD_BITS: u32 = c_ulong::BITS;
/// Words of the longest mask: one bit per accepted CPU number.
const WORDS_MAX: usize = (CPU_ID_MAX / WORD_BITS) as usize + 1;

/// Error in setting or reading the affinity of a thread.
#[derive(Debug, Error)]
pub enum AffinityError {
    /// The kernel refused the mask.
    #[error("cannot run on {cpus:#}: {source}; the CPUs must be online and inside this process's cpuset")]
    Set { cpus: CpuSet, source: io::Error },
    /// The kernel accepted only part of the mask.
    /// - `granted`: the CPUs that the kernel granted.
    #[error(
        "the kernel allows only {granted:#} of {cpus}; the CPUs must be online and inside this process's cpuset"
    )]
    Partial { cpus: CpuSet, granted: CpuSet },
    /// The mask of the thread cannot be read.
    #[error("cannot read the CPU affinity of this thread: {0}")]
    Get(io::Error),
}

/// Pins the calling thread, and threads that it starts later, to these CPUs.
///
/// # Errors
/// [`AffinityError`] if the kernel refuses any of the CPUs. The kernel silently drops CPUs that are offline or
/// outside the cpuset, so the mask is read back; in that case the thread runs on the granted CPUs.
pub fn pin_to(cpus: &CpuSet) -> Result<(), AffinityError> {
    set(cpus)?;
    let granted = current()?;
    if granted == *cpus { Ok(()) } else { Err(AffinityError::Partial { cpus: cpus.clone(), granted }) }
}

/// The CPUs on which the calling thread may run.
///
/// # Errors
/// [`AffinityError::Get`] if the kernel returns an error.
pub fn current() -> Result<CpuSet, AffinityError> {
    of_thread(0)
}

/// The CPUs to which this process was bound (taskset, numactl, a unit): its mask, if that is neither the mask of the
/// first process nor all CPUs that it could use except `isolated`, which isolcpus= takes out of every mask. `None` if
/// it was not bound, or if a mask cannot be read.
pub fn chosen(online: &CpuSet, isolated: &CpuSet) -> Option<CpuSet> {
    let (own, first) = (current().ok()?.intersection(online), of_thread(1).ok()?.intersection(online));
    let usual = settable(online).ok()?.difference(isolated);
    (!own.is_empty() && own != first && own != usual && own != usual.union(isolated)).then_some(own)
}

/// The CPUs on which a thread may run; of the calling one for 0.
///
/// # Errors
/// [`AffinityError::Get`] if the kernel returns an error, as for a thread that has ended.
pub fn of_thread(thread: libc::pid_t) -> Result<CpuSet, AffinityError> {
    let mut words: Vec<c_ulong> = vec![0; WORDS_MAX];
    // SAFETY: the buffer is alive and as long as the length says; the kernel writes no more than that into it.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, thread, size_of_val(words.as_slice()), words.as_mut_ptr())
    };
    if bytes < 0 {
        return Err(AffinityError::Get(io::Error::last_os_error()));
    }
    Ok(set_of(&words))
}

/// Those of `cpus` on which this process could run, whatever its present mask: the kernel limits a mask by the
/// cpuset and the online CPUs, not by the previous mask. Tested in a separate thread, so nothing changes here.
///
/// # Errors
/// [`AffinityError::Get`] if the kernel returns an error.
pub fn settable(cpus: &CpuSet) -> Result<CpuSet, AffinityError> {
    thread::scope(|scope| {
        let asking = thread::Builder::new().name("lowlat-ask".into()).spawn_scoped(scope, || {
            // EINVAL means that no CPU is left.
            if set(cpus).is_err() { Ok(CpuSet::new()) } else { current() }
        });
        match asking.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(AffinityError::Get(io::Error::other("the testing thread died"))),
            Err(error) => Err(AffinityError::Get(error)),
        }
    })
}

fn set(cpus: &CpuSet) -> Result<(), AffinityError> {
    set_mask(0, cpus).map_err(|source| AffinityError::Set { cpus: cpus.clone(), source })
}

/// Restricts a thread to these CPUs; the calling one for 0.
pub(crate) fn set_mask(thread: libc::pid_t, cpus: &CpuSet) -> io::Result<()> {
    let words = words_of(cpus);
    // SAFETY: the mask is alive and as long as the length says; the kernel only reads it. It ignores bits
    // beyond its own CPU count.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, thread, size_of_val(words.as_slice()), words.as_ptr())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn words_of(cpus: &CpuSet) -> Vec<c_ulong> {
    let count = cpus.highest().map_or(1, |highest| (highest / WORD_BITS) as usize + 1);
    let mut words = vec![0; count];
    for cpu in cpus.iter() {
        if let Some(word) = words.get_mut((cpu / WORD_BITS) as usize) {
            *word |= 1 << (cpu % WORD_BITS);
        }
    }
    words
}

fn set_of(words: &[c_ulong]) -> CpuSet {
    (0_u32..)
        .zip(words)
        .flat_map(|(index, word)| {
            (0..WORD_BITS).filter(move |bit| word >> bit & 1 != 0).map(move |bit| index * WORD_BITS + bit)
        })
        .collect::<CpuSet>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_somebody_chose_is_known() {
        let (online, none) = (current().unwrap(), CpuSet::new());
        if online.len() < 2 || of_thread(1).unwrap().intersection(&online) != online {
            eprintln!(
                "skipped: a_mask_that_somebody_chose_is_known: this process is bound already, or has one CPU"
            );
            return;
        }
        assert_eq!(chosen(&online, &none), None);
        let last = CpuSet::of(online.highest().unwrap());
        let bound = thread::spawn(move || {
            pin_to(&last).unwrap();
            let all_but_last = online.difference(&last);
            // As isolcpus= leaves it: nobody chose the rest.
            let rest_is_isolated = chosen(&online, &all_but_last);
            (chosen(&online, &none) == Some(last), rest_is_isolated)
        });
        assert_eq!(bound.join().unwrap(), (true, None));
    }

    #[test]
    fn masks_of_any_size_survive() {
        for highest in [0, 1, 63, 64, 1_023, 1_024, 4_095, CPU_ID_MAX] {
            let cpus: CpuSet = [0, highest / 2, highest].into_iter().collect();
            let words = words_of(&cpus);
            assert!(words.len() <= WORDS_MAX);
            assert_eq!(set_of(&words), cpus);
        }
        assert_eq!(set_of(&words_of(&CpuSet::new())), CpuSet::new());
    }

    #[test]
    fn a_pinned_thread_runs_there() {
        thread::spawn(|| {
            let allowed = current().unwrap();
            let highest = allowed.highest().unwrap();
            pin_to(&CpuSet::of(highest)).unwrap();
            assert_eq!(current().unwrap(), CpuSet::of(highest));
            assert_eq!(settable(&allowed).unwrap(), allowed, "a narrow mask does not bound what may be set");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn missing_cpus_are_named() {
        thread::spawn(|| {
            let allowed = current().unwrap();
            let beyond = CPU_ID_MAX - 3;
            let error = pin_to(&CpuSet::of(beyond)).unwrap_err();
            assert!(error.to_string().starts_with(&format!("cannot run on CPU {beyond}:")), "{error}");
            let mut wanted = allowed.clone();
            wanted.insert(beyond);
            match pin_to(&wanted) {
                Err(AffinityError::Partial { granted, .. }) => assert_eq!(granted, allowed),
                other => panic!("{other:?}"),
            }
            assert!(pin_to(&CpuSet::new()).is_err());
            assert_eq!(settable(&wanted).unwrap(), allowed);
            assert_eq!(settable(&CpuSet::of(beyond)).unwrap(), CpuSet::new());
        })
        .join()
        .unwrap();
    }
}
