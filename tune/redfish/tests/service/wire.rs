//! Minimal HTTP/1.1 for the tests, with or without TLS, and its faults.

use serde_json::Value;
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&String> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path.trim_end_matches('/') == path.trim_end_matches('/')
    }
}

/// A reply of the service.
pub enum Reply {
    /// An answer with its full body.
    Whole { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// These bytes, then the connection is closed.
    Raw(Vec<u8>),
    /// A head that announces more than is sent.
    Cut { promised: usize, body: Vec<u8> },
    /// Nothing, until the client gives up.
    Silence,
    /// A body that never ends.
    Endless,
    /// One byte now and then.
    Drip,
}

impl Reply {
    pub fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self::Whole { status, headers, body: body.to_string().into_bytes() }
    }

    pub fn text(status: u16, body: &[u8]) -> Self {
        Self::Whole { status, headers: Vec::new(), body: body.to_vec() }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Whole { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    pub fn packed(mut self) -> Self {
        if let Self::Whole { body, .. } = &mut self {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(body).unwrap();
            *body = packer.finish().unwrap();
        }
        self.with("Content-Encoding", "gzip")
    }
}

pub fn serve(
    listener: &TcpListener,
    tls: Option<&Arc<rustls::ServerConfig>>,
    ended: &Arc<AtomicBool>,
    handler: &(impl Fn(ReceivedRequest) -> Reply + Send + Sync),
) {
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            if ended.load(Ordering::Acquire) {
                break;
            }
            let Ok(stream) = stream else { continue };
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let (tls, ended) = (tls.cloned(), Arc::clone(ended));
            scope.spawn(move || {
                let _ = match tls {
                    Some(config) => match rustls::ServerConnection::new(config) {
                        Ok(connection) => talk(rustls::StreamOwned::new(connection, stream), &ended, handler),
                        Err(error) => Err(io::Error::other(error)),
                    },
                    None => talk(stream, &ended, handler),
                };
            });
        }
    });
}

fn talk(
    stream: impl Read + Write,
    ended: &AtomicBool,
    handler: &impl Fn(ReceivedRequest) -> Reply,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let seen = match read(&mut stream, ended) {
            Ok(Some(seen)) => seen,
            Ok(None) => break,
            // Not HTTP, such as TLS on a plain port.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                stream.get_mut().write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")?;
                break;
            }
            Err(error) => return Err(error),
        };
        if !reply(stream.get_mut(), handler(seen), ended)? {
            break;
        }
    }
    stream.get_mut().flush()
}

/// Reads a line, retrying read timeouts until the service ends.
fn line(stream: &mut impl BufRead, ended: &AtomicBool) -> io::Result<String> {
    let mut line = String::new();
    loop {
        match stream.read_line(&mut line) {
            Ok(_) => return Ok(line.trim_end().to_owned()),
            Err(error) if is_wait(&error) && !ended.load(Ordering::Acquire) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn read(stream: &mut impl BufRead, ended: &AtomicBool) -> io::Result<Option<ReceivedRequest>> {
    let first = line(stream, ended)?;
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next().filter(|word| !word.is_empty()), words.next()) else {
        return Ok(None);
    };
    let mut headers = Vec::new();
    loop {
        let line = line(stream, ended)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(Some(ReceivedRequest { method: method.to_owned(), path: path.to_owned(), headers, body }))
}

/// Sends the reply. Returns whether the connection stays open.
fn reply(stream: &mut impl Write, reply: Reply, ended: &AtomicBool) -> io::Result<bool> {
    let head = |length: usize| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n")
    };
    let pause = || std::thread::sleep(Duration::from_millis(50));
    match reply {
        Reply::Whole { status, headers, body } => {
            let mut bytes =
                format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n", body.len()).into_bytes();
            for (name, value) in headers {
                write!(bytes, "{name}: {value}\r\n")?;
            }
            write!(bytes, "\r\n")?;
            bytes.extend(body);
            stream.write_all(&bytes)?;
            stream.flush()?;
            Ok(true)
        }
        Reply::Raw(bytes) => {
            stream.write_all(&bytes)?;
            stream.flush()?;
            Ok(false)
        }
        Reply::Cut { promised, body } => {
            stream.write_all(head(promised).as_bytes())?;
            stream.write_all(&body)?;
            stream.flush()?;
            Ok(false)
        }
        Reply::Silence => {
            while !ended.load(Ordering::Acquire) {
                pause();
            }
            Ok(false)
        }
        Reply::Endless => {
            stream.write_all(head(usize::MAX / 2).as_bytes())?;
            while !ended.load(Ordering::Acquire) {
                stream.write_all(&[b' '; 1 << 12])?;
            }
            Ok(false)
        }
        Reply::Drip => {
            stream.write_all(head(1 << 20).as_bytes())?;
            while !ended.load(Ordering::Acquire) {
                stream.write_all(b" ")?;
                stream.flush()?;
                pause();
            }
            Ok(false)
        }
    }
}
