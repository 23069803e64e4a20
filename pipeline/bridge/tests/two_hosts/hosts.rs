//! Two hosts: each with a run and a media driver.

use crate::{
    read::{Read, read, reader},
    run::{LONG_NS, Run},
    two_hosts::process::Process,
};
use lowlat_bridge::mark::Mark;
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Keys, Node, clock::now_ns};
use lowlat_trade::master::{Master, Standing};
use rusteron_media_driver::AeronCnc;
use std::{
    ffi::{CString, OsStr},
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

/// Number of instruments of the stream.
const KEYS: &str = "md:4:4194304";

/// The namespaces created by the script.
#[derive(Debug, Clone)]
pub struct Spaces {
    pub here: String,
    pub there: String,
    pub cable_there: String,
    pub address_there: String,
}

impl Spaces {
    /// Reads the namespaces from the environment; `None` if the script has not set them.
    pub fn given() -> Option<Self> {
        let get = |name| std::env::var(name).ok();
        let given = (|| {
            Some(Self {
                here: get("BRIDGE_HERE")?,
                there: get("BRIDGE_THERE")?,
                cable_there: get("BRIDGE_CABLE_THERE")?,
                address_there: get("BRIDGE_ADDRESS_THERE")?,
            })
        })();
        if given.is_none() {
            eprintln!("skipped: it needs two network namespaces; pipeline/bridge/test makes them");
        }
        given
    }
}

pub struct Hosts {
    pub here: Run,
    pub there: Run,
    /// Options common to both ends of the bridge.
    pub environment: Vec<(&'static str, &'static str)>,
    spaces: Spaces,
    drivers: Vec<Process>,
    /// Dropped after the processes, which write there.
    folder: tempfile::TempDir,
    number: usize,
    started: usize,
}

/// Each test has its own media drivers.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = now_ns() + LONG_NS;
    while !is_so() {
        assert!(now_ns() < end, "waited in vain for: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

impl Hosts {
    /// Runs and drivers; the remote driver also gets this environment.
    pub fn start(spaces: Spaces, there: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (here, there_run) = (Run::start(), Run::start());
        let mut hosts = Self {
            here,
            there: there_run,
            environment: Vec::new(),
            spaces,
            drivers: Vec::new(),
            folder,
            number,
            started: 0,
        };
        // Few threads and little memory: everything runs on two cores.
        let usual = [("AERON_THREADING_MODE", "SHARED"), ("AERON_TERM_BUFFER_LENGTH", "1m")];
        let environment = [&usual[..], there].concat();
        for (space, environment) in
            [(hosts.spaces.here.clone(), &usual[..]), (hosts.spaces.there.clone(), &environment[..])]
        {
            let dir = hosts.driver(&space);
            let driver = Process::start(
                &space,
                hosts.folder.path(),
                &format!("driver-{space}"),
                environment,
                &[OsStr::new("driver"), OsStr::new("--dir"), dir.as_os_str()],
            );
            hosts.drivers.push(driver);
        }
        for driver in &mut hosts.drivers {
            until("the media driver", || {
                driver.assert_runs();
                driver.said().contains("media driver runs in")
            });
        }
        hosts
    }

    fn driver(&self, space: &str) -> PathBuf {
        PathBuf::from(format!("/dev/shm/{space}-{}", self.number))
    }

    /// Sends the local run's `md`.
    pub fn send(&mut self) -> Process {
        let (space, master) = (self.spaces.here.clone(), self.here.socket());
        let patience =
            [OsStr::new("--streams"), OsStr::new("md"), OsStr::new("--patience-us"), OsStr::new("1000000")];
        self.bridge("send", &space, &master, &patience)
    }

    /// Publishes it in the remote run, which then begins.
    pub fn receive(&mut self) -> Process {
        let (space, master) = (self.spaces.there.clone(), self.there.socket());
        let mut process =
            self.bridge("receive", &space, &master, &[OsStr::new("--stream"), OsStr::new(KEYS)]);
        until("the receiver joins", || {
            process.assert_runs();
            self.there.with(|master| {
                let nodes = master.nodes();
                nodes.iter().any(|node| node.name == "bridge.md" && node.standing == Standing::Running)
            })
        });
        self.there.with(Master::begin);
        until("the receiver subscribes", || {
            process.assert_runs();
            process.said().contains("subscribed")
        });
        process
    }

    fn bridge(&mut self, what: &str, space: &str, master: &std::path::Path, more: &[&OsStr]) -> Process {
        let (driver, folder) = (self.driver(space), master.parent().unwrap());
        let channel = format!("aeron:udp?endpoint={}:40123", self.spaces.address_there);
        let mut arguments: Vec<&OsStr> = vec![OsStr::new(what), OsStr::new("--folder"), folder.as_os_str()];
        arguments.extend([
            OsStr::new("--driver"),
            driver.as_os_str(),
            OsStr::new("--channel"),
            OsStr::new(&channel),
        ]);
        arguments.extend(more);
        self.started += 1;
        Process::start(
            space,
            self.folder.path(),
            &format!("{what}-{}", self.started),
            &self.environment,
            &arguments,
        )
    }

    /// kill -9 of both media drivers, which leave their directories behind.
    pub fn kill_drivers(&mut self) {
        self.drivers.drain(..).for_each(Process::kill);
        for space in [&self.spaces.here, &self.spaces.there] {
            std::fs::remove_dir_all(self.driver(space)).unwrap();
        }
    }

    pub fn reader(&self) -> Reader {
        Reader { node: reader(&self.there, "reader", Keys::All), seen: Vec::new() }
    }

    /// A counter of the remote driver, by the prefix of its label.
    pub fn counter_there(&self, label: &str) -> i64 {
        let dir = CString::new(self.driver(&self.spaces.there).to_str().unwrap()).unwrap();
        let mut found = None;
        AeronCnc::read(&dir, |cnc| {
            cnc.counters_reader().foreach_counter_fn(|value, _: i32, _: i32, _: &[u8], text: &str| {
                if text.starts_with(label) {
                    found = Some(found.unwrap_or(0) + value);
                }
            });
        })
        .unwrap();
        found.unwrap_or_else(|| panic!("the driver has no counter {label}"))
    }
}

/// Waits until the sender is connected.
pub fn connected(sender: &mut Process) {
    until("a connection", || {
        sender.assert_runs();
        sender.said().contains("connected")
    });
}

/// A remote node that reads everything.
pub struct Reader {
    node: Node,
    pub seen: Vec<Read>,
}

impl Reader {
    pub fn read(&mut self) {
        self.seen.extend(read(&mut self.node));
    }

    pub fn records(&self) -> Vec<(u64, Stamp)> {
        crate::read::records(&self.seen)
    }

    pub fn marks(&self) -> Vec<(u32, Mark)> {
        crate::read::marks(&self.seen)
    }

    pub fn last(&self) -> u64 {
        self.seen
            .iter()
            .rev()
            .find_map(|read| match read {
                Read::Record(sequence, _) => Some(*sequence),
                Read::Mark(..) => None,
            })
            .unwrap_or(0)
    }

    /// Reads until this record arrives.
    pub fn until(&mut self, sequence: u64) {
        until(&format!("record {sequence}"), || {
            self.read();
            self.last() >= sequence
        });
    }
}
