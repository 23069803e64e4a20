//! A master in a thread of the test.

use lowlat_node::{Join, Keys, Node, Reads, Writes, address::RunFolder};
use lowlat_trade::master::{Access, Area, Happened, Master, Options};
use std::{
    path::PathBuf,
    sync::mpsc::{self, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

type Work = Box<dyn FnOnce(&mut Master, &mut Vec<Happened>) + Send>;

/// Longest time that a test waits for something that must happen.
pub const LONG: Duration = Duration::from_secs(60);

pub struct MasterThread {
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    folder: tempfile::TempDir,
}

impl MasterThread {
    pub fn start(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(RunFolder::at(&folder.path().join("run")).unwrap());
        let (name, streams) = ("stages".to_owned(), "md".to_owned());
        options.areas =
            vec![Area { name, bytes: 8192, streams, access: Access::Write, readers: String::new() }];
        change(&mut options);
        let mut master = Master::open(options).unwrap();
        let (work, queue) = mpsc::channel::<Work>();
        let thread = thread::spawn(move || {
            let mut happened = Vec::new();
            loop {
                happened.extend(master.turn(Duration::from_millis(5)).unwrap());
                loop {
                    match queue.try_recv() {
                        Ok(work) => work(&mut master, &mut happened),
                        Err(mpsc::TryRecvError::Empty) => break,
                        Err(mpsc::TryRecvError::Disconnected) => return,
                    }
                }
            }
        });
        Self { work: Some(work), thread: Some(thread), folder }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("run").join("master.sock")
    }

    /// Executes something with the master, in its thread.
    pub fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Master, &mut Vec<Happened>) -> T + Send + 'static,
    ) -> T {
        let (answer, answered) = mpsc::channel();
        let work: Work = Box::new(move |master, happened| answer.send(work(master, happened)).unwrap());
        self.work.as_ref().unwrap().send(work).unwrap();
        answered.recv_timeout(LONG).expect("the master answers")
    }

    pub fn begin(&self) {
        self.with(|master, _| master.begin());
    }

    /// Waits for something to happen.
    pub fn expect(&self, what: &'static str, is_it: impl Fn(&Happened) -> bool + Send + Copy + 'static) {
        until(what, || self.with(move |_, happened| happened.iter().any(is_it)));
    }

    pub fn join(&self, join: &Join) -> Node {
        Node::join(&self.socket(), join).unwrap()
    }
}

impl Drop for MasterThread {
    fn drop(&mut self) {
        drop(self.work.take());
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "waited in vain for: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as in Join")]
pub fn writes(stream: &str, keys: u32) -> Option<Writes> {
    Some(Writes::new(stream, 1 << 16, keys).giving_credit())
}

pub fn reads(streams: &str, keys: Keys) -> Reads {
    Reads::new(streams, keys)
}

pub fn join(name: &str, writes: Option<Writes>, reads: Vec<Reads>) -> Join {
    Join::new(name, "test").writing(writes).reading(reads)
}
