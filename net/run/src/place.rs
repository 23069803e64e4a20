//! CPUs of the measuring threads.

use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::Root;
use lowlat_host_run::affinity;

/// Chooses a CPU: the highest isolated one that this process may use, else the highest of its mask. `taken` is left out
/// if another remains.
pub fn choose(root: &Root, taken: Option<CpuId>) -> Option<CpuId> {
    let isolated = root.read_cpu_list("/sys/devices/system/cpu/isolated").into_known().unwrap_or_default();
    let isolated = affinity::settable(&isolated).unwrap_or_default();
    let allowed = affinity::current().unwrap_or_default();
    choose_from(&isolated, &allowed, taken)
}

fn choose_from(isolated: &CpuSet, allowed: &CpuSet, taken: Option<CpuId>) -> Option<CpuId> {
    let free =
        |cpus: &CpuSet| taken.map_or_else(|| cpus.clone(), |taken| cpus.difference(&CpuSet::of(taken)));
    [free(isolated), free(allowed), allowed.clone()].iter().find_map(CpuSet::highest)
}

/// Pins the calling thread.
///
/// # Errors
/// A sentence if the CPU cannot be used.
pub fn pin(cpu: Option<CpuId>) -> Result<(), String> {
    let Some(cpu) = cpu else { return Ok(()) };
    affinity::pin_to(&CpuSet::of(cpu)).map_err(|error| error.to_string())
}

/// Gives the calling thread its own table of descriptors. While a table has one user, no system call takes a reference
/// to its file, which is 1 to 4 % of a short one. Descriptors opened before are in both tables from then on, so closing
/// one here does not close its file: what the thread is to close must be opened by it.
pub fn own_descriptors() {
    // SAFETY: unshare(2) with CLONE_FILES copies the table of the calling thread, and touches no memory of this process.
    // A refusal leaves the table shared, which is slower and nothing else.
    let _ = unsafe { libc::unshare(libc::CLONE_FILES) };
}

/// Returns whether this process can run on a CPU.
pub fn is_usable(cpu: CpuId) -> bool {
    affinity::settable(&CpuSet::of(cpu)).is_ok_and(|cpus| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_its_own_descriptors_keeps_its_files_to_itself() {
        let is_open_here = |own: bool| {
            let opening = std::thread::spawn(move || {
                if own {
                    own_descriptors();
                }
                let file = std::fs::File::open("/dev/null").unwrap();
                let number = std::os::fd::AsRawFd::as_raw_fd(&file);
                let main = format!("/proc/self/task/{}/fd/{number}", std::process::id());
                let is_same = std::fs::read_link(main).is_ok_and(|path| path.ends_with("null"));
                (is_same, std::fs::read_link(format!("/proc/thread-self/fd/{number}")).is_ok())
            });
            opening.join().unwrap()
        };
        assert_eq!(is_open_here(false), (true, true));
        // Another test may open the same file under the same number meanwhile.
        assert!((0..20).any(|_| is_open_here(true) == (false, true)));
    }

    #[test]
    fn isolated_cpus_come_first_and_a_taken_one_last() {
        let of = |isolated: &str, allowed: &str, taken| {
            choose_from(&CpuSet::parse_list(isolated).unwrap(), &CpuSet::parse_list(allowed).unwrap(), taken)
        };
        assert_eq!((of("2-3", "0-1", None), of("2-3", "0-1", Some(3))), (Some(3), Some(2)));
        assert_eq!((of("3", "0-1", Some(3)), of("", "0-1", Some(1))), (Some(1), Some(0)));
        assert_eq!((of("", "5", Some(5)), of("", "", None)), (Some(5), None));
    }
}
