//! nginx over HTTPS on loopback, under load by wrk. Nothing is written to disk: configuration and certificate are in
//! memory, and nginx opens them through its descriptors.

use super::{
    super::{Kind, Workload, WorkloadError, team::Outcome},
    Task, path,
    start::{Running, cause, start},
};
use lowlat_workload::{Policy, programs};
use rustix::fs::{MemfdFlags, memfd_create};
use std::{
    fs::File,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsRawFd, OwnedFd},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

pub const HTTPS: Workload = Workload {
    name: "nginx",
    about: "nginx workers answer wrk's threads over HTTPS on loopback, 1 KiB each",
    unit: "requests",
    kind: Kind::Program {
        needs: &[
            ("nginx", "package nginx-light or nginx"),
            ("wrk", "package wrk"),
            ("openssl", "package openssl"),
        ],
        run,
    },
};

/// Connections of one of wrk's threads.
const CONNECTIONS_PER_THREAD: usize = 4;
const ANSWER_BYTES: usize = 1_024;
/// Time in which nginx starts.
const START_MAX: Duration = Duration::from_secs(10);
/// Time in which openssl makes a key of an elliptic curve.
const KEY_SECONDS: u32 = 5;
/// Time between two attempts to connect.
const LOOK_EVERY: Duration = Duration::from_millis(5);

fn run(task: &Task, stop: &AtomicBool) -> Result<Option<Outcome>, WorkloadError> {
    let Some(certificate) = certificate(stop)? else { return Ok(None) };
    let port = free_port().map_err(|error| WorkloadError(format!("no port is free: {error}")))?;
    let certificate =
        in_memory(&certificate).map_err(WorkloadError::cannot("make memory for a certificate"))?;
    let pid = in_memory("").map_err(WorkloadError::cannot("make memory for a process number"))?;
    let text = configuration(port, task.copies, [&certificate, &pid].map(descriptor));
    let configuration = in_memory(&text).map_err(WorkloadError::cannot("make memory for a configuration"))?;
    let mut command = Command::new(path("nginx")?);
    command.args(["-e", "stderr", "-c", &descriptor(&configuration)]);
    let mut server = start(&mut command, task)?;
    wait_until_it_answers(&mut server, port, stop)?;
    let mut command = Command::new(path("wrk")?);
    let threads = task.copies.max(1);
    command.arg("--latency").arg("-t").arg(threads.to_string());
    command.arg("-c").arg((threads * CONNECTIONS_PER_THREAD).to_string());
    command.arg("-d").arg(format!("{}s", task.seconds)).arg(format!("https://127.0.0.1:{port}/"));
    let Some(text) = start(&mut command, task)?.finish("wrk", stop)? else { return Ok(None) };
    Ok(Some(task.outcome(programs::wrk(&text).map_err(WorkloadError)?)))
}

/// A new key and a certificate signed with it; `None` if `stop` was raised.
fn certificate(stop: &AtomicBool) -> Result<Option<String>, WorkloadError> {
    let mut command = Command::new(path("openssl")?);
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "2", "-subj", "/CN=localhost", "-keyout", "/dev/stdout", "-out", "/dev/stdout"]);
    let alone = Task { copies: 1, cpus: None, policy: Policy::Other, seconds: KEY_SECONDS };
    start(&mut command, &alone)?.finish("openssl", stop)
}

/// A port on which nothing listens now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A file in memory that programs inherit.
fn in_memory(text: &str) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("lowlat", MemfdFlags::empty())?);
    file.write_all(text.as_bytes())?;
    Ok(file.into())
}

/// Path of a descriptor in the process that inherits it.
fn descriptor(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn configuration(port: u16, workers: usize, [certificate, pid]: [String; 2]) -> String {
    let answer = "x".repeat(ANSWER_BYTES);
    let connections = workers * CONNECTIONS_PER_THREAD + 512;
    format!(
        "daemon off;\nworker_processes {workers};\npid {pid};\nerror_log stderr crit;\n\
         events {{ worker_connections {connections}; }}\n\
         http {{\n  access_log off;\n  keepalive_requests 1000000000;\n\
         \x20 server {{\n    listen 127.0.0.1:{port} ssl reuseport;\n    ssl_certificate {certificate};\n\
         \x20   ssl_certificate_key {certificate};\n    location / {{ return 200 \"{answer}\"; }}\n  }}\n}}\n"
    )
}

fn wait_until_it_answers(server: &mut Running, port: u16, stop: &AtomicBool) -> Result<(), WorkloadError> {
    let deadline = Instant::now() + START_MAX;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    // Relaxed: set by the signal handler; orders nothing.
    while !stop.load(Ordering::Relaxed) {
        if server.has_ended() {
            return Err(WorkloadError(format!("nginx did not start{}", cause(&server.errors()))));
        }
        if TcpStream::connect_timeout(&address, LOOK_EVERY).is_ok() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(WorkloadError(format!("nginx did not answer within {} s", START_MAX.as_secs())));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
