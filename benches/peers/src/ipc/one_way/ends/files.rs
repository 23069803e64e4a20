//! Transports that the kernel offers.

use super::{Bytes, Channel, Transport, raw::Line};
use crate::ipc::trial::message::PAYLOAD_BYTES;
use rustix::io::{read, retry_on_intr, write};
use std::os::fd::OwnedFd;

/// One pipe in each direction.
#[derive(Debug)]
pub struct Pipe {
    there: OwnedFd,
    back: OwnedFd,
}

impl Pipe {
    pub fn new(channel: &mut Channel) -> anyhow::Result<Self> {
        Ok(Self { there: channel.descriptor()?, back: channel.descriptor()? })
    }
}

/// Sends one message: fewer bytes than PIPE_BUF are written atomically.
fn send(file: &OwnedFd, message: &Bytes) -> anyhow::Result<()> {
    let count = retry_on_intr(|| write(file, message))?;
    anyhow::ensure!(count == PAYLOAD_BYTES, "{count} bytes went, {PAYLOAD_BYTES} expected");
    Ok(())
}

fn receive(file: &OwnedFd, message: &mut Bytes) -> anyhow::Result<()> {
    let count = retry_on_intr(|| read(file, &mut *message))?;
    anyhow::ensure!(count == PAYLOAD_BYTES, "{count} bytes came, {PAYLOAD_BYTES} expected");
    Ok(())
}

impl Transport for Pipe {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        send(&self.there, message)
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        receive(&self.back, message)
    }
}

/// A unix socket that keeps messages apart.
#[derive(Debug)]
pub struct Seqpacket {
    socket: OwnedFd,
}

impl Seqpacket {
    pub fn new(channel: &mut Channel) -> anyhow::Result<Self> {
        Ok(Self { socket: channel.descriptor()? })
    }
}

impl Transport for Seqpacket {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        send(&self.socket, message)
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        receive(&self.socket, message)
    }
}

/// One eventfd in each direction; the payload goes over a line.
#[derive(Debug)]
pub struct Event {
    there: OwnedFd,
    back: OwnedFd,
    line: Line,
}

impl Event {
    pub fn new(channel: &mut Channel) -> anyhow::Result<Self> {
        Ok(Self { there: channel.descriptor()?, back: channel.descriptor()?, line: Line::new(channel) })
    }
}

impl Transport for Event {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        self.line.send(message)?;
        retry_on_intr(|| write(&self.there, &1_u64.to_ne_bytes()))?;
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        retry_on_intr(|| read(&self.back, &mut [0_u8; 8]))?;
        // The payload was stored before the event.
        self.line.receive(message)
    }
}
