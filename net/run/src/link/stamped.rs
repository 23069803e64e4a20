//! Messages with time stamps.

use super::{
    super::stamps::{Stamper, hold, now_ns},
    Ended, Link, Wires,
};
use lowlat_jitter_run::clock::{ArchCounter, MonotonicCounter};
use lowlat_net::pingpong::parts::Stamps;
use std::{io, sync::Arc};

impl Link {
    /// Starts a batch with time stamps.
    ///
    /// # Errors
    /// If the kernel refuses, or these descriptors are no sockets.
    pub fn start_stamps(&mut self, count: u64, bytes: u32) -> io::Result<()> {
        let Wires::Sockets { receive, .. } = &self.wires else {
            return Err(io::Error::other("pipes have no time stamps"));
        };
        hold()?;
        self.stamper = Some(Box::new(Stamper::start(Arc::clone(receive), count, bytes, self.is_stream)?));
        Ok(())
    }

    /// Ends a batch with time stamps. Returns a row for each message.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end_stamps(&mut self) -> io::Result<Vec<Stamps>> {
        self.stamper.take().map_or_else(|| Ok(Vec::new()), |stamper| stamper.end())
    }

    /// The client's round trip with time stamps: sends a message and waits for its answer. Returns the counter at its
    /// end. As at the start, where the caller reads the counter, the clock is read right after it: both take the same
    /// time, so it does not make the parts longer or shorter than the measured time. Reading the departures is left to
    /// [`Link::read_departures`], after the measured time.
    ///
    /// # Errors
    /// [`Ended`] if no answer arrives.
    pub fn stamped_round_trip(&mut self, bytes: usize) -> Result<u64, Ended> {
        let sending_ns = Some(now_ns());
        if let Some(stamper) = &mut self.stamper {
            stamper.push(Stamps { sending_ns, ..Stamps::default() });
        }
        self.send(bytes)?;
        self.receive(bytes)?;
        let end = ArchCounter.now();
        let received_ns = Some(now_ns());
        if let Some(stamper) = &mut self.stamper {
            let Stamps { arrived_ns, arrived_at_nic_ns, .. } = stamper.take_arrival();
            if let Some(row) = stamper.last_row() {
                *row = Stamps { arrived_ns, arrived_at_nic_ns, received_ns, ..*row };
            }
        }
        Ok(end)
    }

    /// The server's answer with time stamps: waits for a message and sends it back.
    ///
    /// # Errors
    /// [`Ended`] if no message arrives.
    pub fn stamped_answer(&mut self, bytes: usize) -> Result<(), Ended> {
        self.receive(bytes)?;
        let received_ns = Some(now_ns());
        if let Some(stamper) = &mut self.stamper {
            let arrival = stamper.take_arrival();
            let sending_ns = Some(now_ns());
            stamper.push(Stamps { received_ns, sending_ns, ..arrival });
        }
        self.send(bytes)?;
        self.read_departures();
        Ok(())
    }

    /// Reads the departures that the kernel has stamped so far.
    pub fn read_departures(&mut self) {
        if let Some(stamper) = &mut self.stamper {
            stamper.read_departures();
        }
    }
}
