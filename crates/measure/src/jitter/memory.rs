//! Keeping the samplers' memory where it is.

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// All memory of the process locked while this lives.
#[derive(Debug)]
pub struct Locked(());

impl Locked {
    /// Locks what is resident now and what becomes so later (`MCL_ONFAULT`: nothing is read in for it), code and
    /// stacks included: a page that the kernel takes away would come back by a fault, an interruption of our own
    /// making. For the process as a whole, so a caller that has locked memory itself must lock it again afterwards.
    ///
    /// # Errors
    /// A sentence that says why not, and what to do.
    pub fn new() -> Result<Self, String> {
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT).map(|()| Self(())).map_err(|error| {
            format!(
                "The memory of the samplers could not be locked ({error}): a page fault of their own would count as \
                 an interruption. Run as root, or raise the limit on locked memory (ulimit -l)."
            )
        })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Unlocking has no failure that could be acted on.
        let _ = munlockall();
    }
}
