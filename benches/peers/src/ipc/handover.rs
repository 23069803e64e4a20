//! Memory and other descriptors for a child: they come as one message over a socket, which is the child's standard
//! input. So a child owns what it gets, and no descriptor is open in a process that it was not meant for.

use anyhow::{Context, bail};
use lowlat_ipc::passing;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{Child, Command, Stdio},
};

/// Starts this program again with `arguments`, and gives it the descriptors.
pub fn start(arguments: &[String], descriptors: &[BorrowedFd<'_>], output: Stdio) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .context("cannot make a pair of sockets")?;
    // The message stays in the socket until the child reads it, even after this side is closed.
    passing::send(&ours, b"lowlat-peers", descriptors).context("cannot pass descriptors on")?;
    Command::new(program)
        .args(arguments)
        .args(["--parent", &std::process::id().to_string()])
        .stdin(Stdio::from(theirs))
        .stdout(output)
        .spawn()
        .context("cannot start a process of the bench")
}

/// Receives the child's descriptors from its parent, exactly `count` of them.
pub fn take(count: usize) -> anyhow::Result<Vec<OwnedFd>> {
    let received = passing::receive(io::stdin().as_fd()).context(
        "standard input is no socket: this subcommand is started by lowlat-peers itself, not by hand",
    )?;
    let descriptors = received.context("the process that started this one has ended")?.descriptors;
    if descriptors.len() != count {
        bail!("{} descriptors were passed on, {count} expected", descriptors.len());
    }
    Ok(descriptors)
}

/// Ends this process when its parent ends, however that happens.
pub fn follow_parent(parent: i32) -> anyhow::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .context("cannot ask to end with the parent")?;
    // The parent may have ended before that.
    let is_there = rustix::process::getppid().is_some_and(|pid| pid.as_raw_nonzero().get() == parent);
    anyhow::ensure!(is_there, "the process that started this one has ended");
    Ok(())
}
