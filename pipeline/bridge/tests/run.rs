//! A run on one host in the test: its master in a thread, and writing nodes.

use lowlat_ipc::stream::Stamp;
use lowlat_node::{Join, Node, Reads, Writes, address::RunFolder, clock::now_ns};
use lowlat_trade::master::{Master, Options};
use std::{
    path::PathBuf,
    sync::mpsc::{self, Sender as Channel},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Longest wait of a test for something that must happen.
pub const LONG_NS: u64 = 60_000_000_000;

type Work = Box<dyn FnOnce(&mut Master) + Send>;

/// A master in a thread.
pub struct Run {
    work: Option<Channel<Work>>,
    thread: Option<JoinHandle<()>>,
    folder: tempfile::TempDir,
}

impl Run {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(RunFolder::at(&folder.path().join("run")).unwrap());
        let mut master = Master::open(options).unwrap();
        let (work, queue) = mpsc::channel::<Work>();
        let thread = thread::spawn(move || {
            loop {
                master.turn(Duration::from_millis(2)).unwrap();
                match queue.try_recv() {
                    Ok(work) => work(&mut master),
                    Err(mpsc::TryRecvError::Empty) => {}
                    Err(mpsc::TryRecvError::Disconnected) => return,
                }
            }
        });
        Self { work: Some(work), thread: Some(thread), folder }
    }

    /// Executes something with the master, in its thread.
    pub fn with<T: Send + 'static>(&self, work: impl FnOnce(&mut Master) -> T + Send + 'static) -> T {
        let (done, wait) = mpsc::channel();
        let work: Work = Box::new(move |master| {
            done.send(work(master)).unwrap();
        });
        self.work.as_ref().unwrap().send(work).unwrap();
        wait.recv_timeout(Duration::from_nanos(LONG_NS)).expect("the master answers")
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("run").join("master.sock")
    }

    pub fn writer(&self, stream: &str, keys: u32) -> Node {
        let writes = Writes::new(stream, 1 << 22, keys);
        Node::join(&self.socket(), &join(stream, Some(writes), vec![])).unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        drop(self.work.take());
        assert!(self.thread.take().unwrap().join().is_ok() || thread::panicking());
    }
}

pub fn join(name: &str, writes: Option<Writes>, reads: Vec<Reads>) -> Join {
    Join::new(name, "test").writing(writes).reading(reads)
}

/// All fields differ, so that swapped ones are detected.
pub fn stamp(instrument: u32) -> Stamp {
    Stamp { kind: 1, schema: 2, instrument, source: 77, generated: now_ns(), trigger: 5, cause: 6 }
}

/// Publishes this many records, of each instrument in turn; their payload is their number.
pub fn publish(md: &mut Node, count: u64) -> Vec<(u64, Stamp)> {
    (0..count)
        .map(|_| {
            let sequence = md.publisher().next_sequence().unwrap();
            let stamp = stamp(u32::try_from(sequence % 4).unwrap());
            md.publisher().publish(&stamp, &sequence.to_le_bytes()).unwrap();
            (sequence, stamp)
        })
        .collect()
}
