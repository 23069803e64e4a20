//! Starting programs.

use crate::workload::{Kind, Scale, Workload, WorkloadError, WorkloadJob, work::done};
use lowlat_host_run::{Root, programs::find};
use std::{ffi::CString, io, ptr};

pub const WORKLOAD: Workload = Workload {
    name: "fork-exec",
    about: "a process starts /bin/true and waits for its end, again and again",
    unit: "programs",
    kind: Kind::Processes { per_copy: 1, make },
};

/// A program that does nothing.
const PROGRAM: &str = "true";
/// Folders that may contain the program.
const FOLDERS: &str = "/bin:/usr/bin";

fn make(_: Scale<'_>) -> Result<WorkloadJob, WorkloadError> {
    let found = find(&Root::live(), PROGRAM, FOLDERS).and_then(|path| CString::new(path).ok());
    let missing = || WorkloadError(format!("{PROGRAM} is not installed in {FOLDERS}"));
    let program = found.ok_or_else(missing)?;
    Ok(Box::new(move |_, _, pace| {
        let arguments = [program.as_ptr(), ptr::null()];
        let environment = [ptr::null()];
        pace.count(|| {
            // SAFETY: this process has one thread, and the child only calls execve or ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: the path and both lists end with zeros and are alive.
                unsafe {
                    libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                    libc::_exit(127);
                }
            }
            done(child.into())?;
            let mut status = 0;
            // SAFETY: the status lives through the call.
            done(unsafe { libc::waitpid(child, &raw mut status, 0) }.into())?;
            if status == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOEXEC)) }
        })
    }))
}
