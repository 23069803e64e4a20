//! Roles of this test program as separate processes: it is started again with a role in its environment.

use crate::{
    master_thread::{join, reads},
    runtime::pipeline,
};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    Event, Keys, Node, NodeEnded, NodePublishError, Writes, address::RunFolder, clock::now_ns,
    control::WithoutMaster,
};
use lowlat_trade::master::{Happened, Master, Options, Program};
use std::{
    env,
    fs::OpenOptions,
    io::Write,
    path::Path,
    process::{Child, Command},
    time::Duration,
};

/// Exit code of a process that was dropped.
pub const FENCED: i32 = 42;
pub const ROLE: &str = "LOWLAT_TEST_ROLE";
/// Room for everything that a test publishes while a reader restarts.
pub const CAPACITY: u64 = 1 << 22;

/// Does nothing as a test; with a role in the environment it plays that role and exits.
#[test]
fn child() {
    let Ok(role) = env::var(ROLE) else { return };
    match role.split_once(':').unwrap() {
        ("writer", rest) => writer(rest),
        ("reader", rest) => reader(rest),
        ("master", rest) => master(rest),
        ("md", rest) => pipeline::md(rest),
        ("td", rest) => pipeline::td(rest),
        ("strategy", rest) => pipeline::strategy(rest),
        ("crashing", rest) => pipeline::crashing(rest),
        (other, _) => panic!("role {other}"),
    }
}

fn environment(role: &str) -> Vec<(String, String)> {
    vec![(ROLE.to_owned(), role.to_owned())]
}

fn arguments() -> Vec<String> {
    ["runtime::child::child", "--exact", "--nocapture", "--test-threads=1"].map(str::to_owned).to_vec()
}

/// A process for the master to start. `role` as in [`child`].
pub fn program(name: &str, role: &str) -> Program {
    Program {
        name: name.to_owned(),
        role: name.to_owned(),
        program: env::current_exe().unwrap(),
        arguments: arguments(),
        environment: environment(role),
        cpus: Vec::new(),
        restarts_max: 1000,
        backs_off: false,
    }
}

/// A process of the test, killed with it.
pub struct Started(pub Child);

impl Drop for Started {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts a process of the test. `role` as in [`child`].
pub fn start(role: &str) -> Started {
    let mut command = Command::new(env::current_exe().unwrap());
    Started(command.args(arguments()).envs(environment(role)).spawn().unwrap())
}

/// "SOCKET NAME PERIOD_US": publishes its sequence and process id repeatedly, until it is stopped.
fn writer(text: &str) {
    let mut words = text.split(' ');
    let (socket, name, period_us) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let period = Duration::from_micros(period_us.parse().unwrap());
    let stream = Writes::new("count", CAPACITY, 4);
    let mut node = Node::join(Path::new(socket), &join(name, Some(stream), vec![])).unwrap();
    let (mut may_publish, mut is_over) = (false, false);
    while !is_over {
        node.poll(&mut |_, event| match event {
            Event::Begin => may_publish = true,
            Event::Stop => is_over = true,
            _ => {}
        });
        if may_publish && !is_over {
            let sequence = node.publisher().next_sequence().unwrap();
            let instrument = u32::try_from(sequence % 4).unwrap();
            let stamp = Stamp { instrument, kind: 1, source: std::process::id(), ..Stamp::default() };
            match node.publisher().publish(&stamp, &sequence.to_le_bytes()) {
                Ok(published) => assert_eq!(published.sequence, sequence),
                Err(NodePublishError::Refused(error)) => {
                    eprintln!("{error}");
                    std::process::exit(FENCED);
                }
                Err(error) => panic!("{error}"),
            }
        }
        node.wait(Some(now_ns() + u64::try_from(period.as_nanos()).unwrap()));
    }
    if node.ended() == Some(NodeEnded::Fenced) {
        std::process::exit(FENCED);
    }
}

/// "SOCKET NAME FILE": writes the sequences that it reads into a file, one per line, until it is stopped.
fn reader(text: &str) {
    let mut words = text.split(' ');
    let (socket, name, file) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    let join = join(name, None, vec![reads("count", Keys::All)]);
    let mut node = Node::join(Path::new(socket), &join).unwrap();
    let mut is_over = false;
    while !is_over {
        node.wait(None);
        node.poll(&mut |_, event| match event {
            // One write each, so that a kill leaves complete lines.
            Event::Record { record, .. } => {
                file.write_all(format!("{}\n", record.sequence).as_bytes()).unwrap();
            }
            Event::Lost { count, .. } => {
                file.write_all(format!("lost {count}\n").as_bytes()).unwrap();
            }
            Event::Stop => is_over = true,
            _ => {}
        });
    }
    if node.ended() == Some(NodeEnded::Fenced) {
        std::process::exit(FENCED);
    }
}

/// "FOLDER POLICY NODES": a master that runs until it is killed, and begins when this many nodes have joined.
fn master(text: &str) {
    let mut words = text.split(' ');
    let (folder, policy, nodes) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let mut options = Options::new(RunFolder::at(Path::new(folder)).unwrap());
    options.without_master = match policy {
        "stop" => WithoutMaster::Stop,
        "go-on" => WithoutMaster::GoOn,
        other => panic!("{other}"),
    };
    let mut master = Master::open(options).unwrap();
    let mut rest: u32 = nodes.parse().unwrap();
    loop {
        for happened in master.turn(Duration::from_millis(20)).unwrap() {
            if matches!(happened, Happened::Joined { .. }) {
                rest -= 1;
                if rest == 0 {
                    master.begin();
                }
            }
        }
    }
}
