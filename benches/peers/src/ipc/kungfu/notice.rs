//! Notices: every process pushes one to master for each frame that it writes, and master publishes each to all.

use super::nanomsg::{Nanomsg, Protocol, Socket};
use anyhow::bail;
use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Content of a notice, which carries no information.
const NOTICE: &[u8] = b"{}";
/// Longest wait of a process for a notice before it checks its journals anyway.
const CLIENT_TIMEOUT_MS: i32 = 100;
/// Longest wait of the master for a notice.
const MASTER_TIMEOUT_MS: i32 = 1000;
/// Timeout of waits while processes connect.
const CONNECT_TIMEOUT_MS: i32 = 20;
const CONNECT: Duration = Duration::from_secs(20);

fn addresses(folder: &Path) -> [String; 2] {
    ["to-master", "from-master"].map(|name| format!("ipc://{}", folder.join(name).display()))
}

/// Sockets of the master process.
#[derive(Debug)]
pub struct Master<'a> {
    pull: Socket<'a>,
    publish: Socket<'a>,
    is_fast: bool,
}

impl<'a> Master<'a> {
    /// Binds both sockets in the folder.
    pub fn bind(library: &'a Nanomsg, folder: &Path, is_fast: bool) -> anyhow::Result<Self> {
        let [to, from] = addresses(folder);
        let (pull, publish) = (library.socket(Protocol::Pull)?, library.socket(Protocol::Pub)?);
        pull.bind(&to)?;
        publish.bind(&from)?;
        pull.set_receive_timeout_ms(CONNECT_TIMEOUT_MS)?;
        Ok(Self { pull, publish, is_fast })
    }

    /// Publishes notices while processes connect, so that each can see that it is connected.
    pub fn assemble(&self, is_assembling: impl Fn() -> bool) -> anyhow::Result<()> {
        while is_assembling() {
            self.pull.receive(true)?;
            self.publish.send(NOTICE)?;
        }
        self.pull.set_receive_timeout_ms(MASTER_TIMEOUT_MS)
    }

    /// Waits for a notice and passes it on to all. In fast mode it passes nothing on. (Kungfu's master spins then; here
    /// it sleeps, so that it does not take a CPU from those that are measured.)
    pub fn pass(&self) -> anyhow::Result<()> {
        if self.pull.receive(true)? && !self.is_fast {
            self.publish.send(NOTICE)?;
        }
        Ok(())
    }
}

/// Sockets of every other process.
#[derive(Debug)]
pub struct Notice<'a> {
    push: Socket<'a>,
    subscribed: Socket<'a>,
    is_fast: bool,
}

impl<'a> Notice<'a> {
    /// Connects to master and waits until notices go both ways.
    pub fn connect(library: &'a Nanomsg, folder: &Path, is_fast: bool) -> anyhow::Result<Self> {
        let [to, from] = addresses(folder);
        let (push, subscribed) = (library.socket(Protocol::Push)?, library.socket(Protocol::Sub)?);
        push.connect(&to)?;
        subscribed.connect(&from)?;
        subscribed.set_receive_timeout_ms(CONNECT_TIMEOUT_MS)?;
        let start = Instant::now();
        let (mut is_sent, mut is_received) = (false, false);
        while !(is_sent && is_received) {
            if start.elapsed() > CONNECT {
                bail!("no notice from master within {CONNECT:?}");
            }
            is_sent = is_sent || push.send(NOTICE)?;
            is_received = is_received || subscribed.receive(true)?;
            thread::sleep(Duration::from_millis(1));
        }
        subscribed.set_receive_timeout_ms(CLIENT_TIMEOUT_MS)?;
        Ok(Self { push, subscribed, is_fast })
    }

    /// To be called after each frame written. Sends a notice, except in fast mode.
    #[inline]
    pub fn notify(&self) -> anyhow::Result<()> {
        if !self.is_fast {
            self.push.send(NOTICE)?;
        }
        Ok(())
    }

    /// Waits for a notice or the timeout; in fast mode, only checks for a notice.
    #[inline]
    pub fn wait(&self) -> anyhow::Result<()> {
        self.subscribed.receive(!self.is_fast)?;
        Ok(())
    }
}
