//! The few calls of libnanomsg that the model needs, looked up when it runs: without the library this program builds and
//! runs all the same, and leaves the model out.

use anyhow::{Context, bail};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// File names of the library; Debian's libnanomsg5 has the first.
const NAMES: [&str; 2] = ["libnanomsg.so.5", "libnanomsg.so"];

// The library's own numbers: nanomsg/nn.h, pipeline.h and pubsub.h of 1.1.5.
const AF_SP: c_int = 1;
const NN_SOL_SOCKET: c_int = 0;
const NN_RCVTIMEO: c_int = 5;
const NN_SUB_SUBSCRIBE: c_int = 1;
const NN_DONTWAIT: c_int = 1;

/// Types of sockets, with the library's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Protocol {
    /// Sends each message to one peer.
    Push = 80,
    /// Receives messages from many peers.
    Pull = 81,
    /// Sends each message to all subscribers.
    Pub = 32,
    /// Receives what it subscribed to.
    Sub = 33,
}

type NewSocket = unsafe extern "C" fn(c_int, c_int) -> c_int;
type Endpoint = unsafe extern "C" fn(c_int, *const c_char) -> c_int;
type SetOption = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, usize) -> c_int;
type Send = unsafe extern "C" fn(c_int, *const c_void, usize, c_int) -> c_int;
type Receive = unsafe extern "C" fn(c_int, *mut c_void, usize, c_int) -> c_int;
type Close = unsafe extern "C" fn(c_int) -> c_int;
type Errno = unsafe extern "C" fn() -> c_int;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

/// Functions of the loaded library.
#[derive(Debug)]
pub struct Nanomsg {
    socket: NewSocket,
    bind: Endpoint,
    connect: Endpoint,
    set_option: SetOption,
    send: Send,
    receive: Receive,
    close: Close,
    errno: Errno,
    error_text: ErrorText,
    /// Last: the functions above are those of the library, and gone with it.
    _library: Library,
}

impl Nanomsg {
    pub fn load() -> anyhow::Result<Self> {
        let mut failure = String::new();
        for name in NAMES {
            // SAFETY: running the initialisers of the system's own libnanomsg, which has none that need anything of us.
            match unsafe { Library::new(name) } {
                Ok(library) => return Self::of(library).with_context(|| format!("{name} is no libnanomsg")),
                Err(error) => failure = error.to_string(),
            }
        }
        bail!("libnanomsg is not here ({failure}): install Debian's libnanomsg5")
    }

    fn of(library: Library) -> anyhow::Result<Self> {
        // SAFETY: each type is that of the function's declaration in nanomsg/nn.h 1.1.5 (size_t is usize), and the
        // functions are called only while `_library` keeps them loaded.
        unsafe {
            Ok(Self {
                socket: *library.get(b"nn_socket\0")?,
                bind: *library.get(b"nn_bind\0")?,
                connect: *library.get(b"nn_connect\0")?,
                set_option: *library.get(b"nn_setsockopt\0")?,
                send: *library.get(b"nn_send\0")?,
                receive: *library.get(b"nn_recv\0")?,
                close: *library.get(b"nn_close\0")?,
                errno: *library.get(b"nn_errno\0")?,
                error_text: *library.get(b"nn_strerror\0")?,
                _library: library,
            })
        }
    }

    /// Opens a socket; one of type `Sub` subscribes to everything.
    pub fn socket(&self, protocol: Protocol) -> anyhow::Result<Socket<'_>> {
        // SAFETY: takes numbers, and answers with one.
        let number = unsafe { (self.socket)(AF_SP, protocol as c_int) };
        if number < 0 {
            bail!("nn_socket ({protocol:?}): {}", self.failure().1);
        }
        let socket = Socket { library: self, number };
        if protocol == Protocol::Sub {
            // The empty prefix: everything, as in Kungfu.
            socket.set(Protocol::Sub as c_int, NN_SUB_SUBSCRIBE, b"")?;
        }
        Ok(socket)
    }

    /// Number and text of this thread's last failure.
    fn failure(&self) -> (c_int, String) {
        // SAFETY: reads this thread's errno.
        let number = unsafe { (self.errno)() };
        // SAFETY: gives a text that the library keeps, ended by a zero.
        let text = unsafe { CStr::from_ptr((self.error_text)(number)) };
        (number, text.to_string_lossy().into_owned())
    }
}

/// An open socket, which is closed when dropped.
#[derive(Debug)]
pub struct Socket<'a> {
    library: &'a Nanomsg,
    number: c_int,
}

impl Socket<'_> {
    fn set(&self, level: c_int, option: c_int, value: &[u8]) -> anyhow::Result<()> {
        // SAFETY: the library reads `value.len()` bytes of `value` during the call.
        let result = unsafe {
            (self.library.set_option)(self.number, level, option, value.as_ptr().cast(), value.len())
        };
        anyhow::ensure!(result >= 0, "nn_setsockopt {option}: {}", self.library.failure().1);
        Ok(())
    }

    /// Sets the longest wait of `receive`.
    pub fn set_receive_timeout_ms(&self, timeout_ms: i32) -> anyhow::Result<()> {
        self.set(NN_SOL_SOCKET, NN_RCVTIMEO, &timeout_ms.to_ne_bytes())
    }

    /// Binds to an address such as `ipc:///tmp/x`.
    pub fn bind(&self, address: &str) -> anyhow::Result<()> {
        self.attach(self.library.bind, "nn_bind", address)
    }

    pub fn connect(&self, address: &str) -> anyhow::Result<()> {
        self.attach(self.library.connect, "nn_connect", address)
    }

    fn attach(&self, function: Endpoint, name: &str, address: &str) -> anyhow::Result<()> {
        let text = CString::new(address)?;
        // SAFETY: the library reads the text, which ends with a zero, during the call.
        let result = unsafe { function(self.number, text.as_ptr()) };
        anyhow::ensure!(result >= 0, "{name} {address}: {}", self.library.failure().1);
        Ok(())
    }

    /// Sends without waiting. Returns false if no peer can take the message now.
    pub fn send(&self, message: &[u8]) -> anyhow::Result<bool> {
        // SAFETY: the library copies `message.len()` bytes of `message` during the call.
        let result =
            unsafe { (self.library.send)(self.number, message.as_ptr().cast(), message.len(), NN_DONTWAIT) };
        self.done(result, "nn_send")
    }

    /// Receives one message and discards its content. Returns false if there is none, at once or within the timeout.
    pub fn receive(&self, is_waiting: bool) -> anyhow::Result<bool> {
        let mut message = [0_u8; 64];
        let flags = if is_waiting { 0 } else { NN_DONTWAIT };
        // SAFETY: the library writes at most `message.len()` bytes to `message` during the call.
        let result =
            unsafe { (self.library.receive)(self.number, message.as_mut_ptr().cast(), message.len(), flags) };
        self.done(result, "nn_recv")
    }

    fn done(&self, result: c_int, name: &str) -> anyhow::Result<bool> {
        if result >= 0 {
            return Ok(true);
        }
        let (number, text) = self.library.failure();
        match number {
            libc::EAGAIN | libc::ETIMEDOUT | libc::EINTR => Ok(false),
            _ => bail!("{name}: {text}"),
        }
    }
}

impl Drop for Socket<'_> {
    fn drop(&mut self) {
        // SAFETY: closes a socket of ours, once.
        unsafe { (self.library.close)(self.number) };
    }
}
