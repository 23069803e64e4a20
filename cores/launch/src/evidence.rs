//! Evidence that a running command uses its accelerator: preloading alone does not prove it.
//!
//! A socket that Onload cannot accelerate silently stays in the kernel, for example when the driver accepts a
//! registration and refuses the bind.

use crate::Accelerator;
use std::{fmt, net::SocketAddr};

/// Socket of the command in the kernel's tables (/proc/PID/net/tcp and its relatives).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSocket {
    /// Protocol, such as "tcp" or "udp6".
    pub protocol: &'static str,
    pub local: SocketAddr,
    /// Remote address; unspecified while it listens.
    pub remote: SocketAddr,
}

impl KernelSocket {
    /// True if it can only reach this host. Accelerators leave such sockets to the kernel.
    fn is_loopback(&self) -> bool {
        self.local.ip().is_loopback() || self.remote.ip().is_loopback()
    }
}

impl fmt::Display for KernelSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.remote.port() == 0 {
            write!(f, "{} {}", self.protocol, self.local)
        } else {
            write!(f, "{} {} to {}", self.protocol, self.local, self.remote)
        }
    }
}

/// Observations of a running command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccelerationEvidence {
    /// True if it has mapped the accelerator's library.
    pub has_library: bool,
    /// Open device of the accelerator, such as /dev/onload or /dev/infiniband/uverbs0.
    pub device: Option<String>,
    /// Internet sockets that the kernel serves.
    pub kernel_sockets: Vec<KernelSocket>,
}

/// Finding about a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceleration {
    /// The library is not mapped: the command is static, set-user-ID, or another program without it.
    NoLibrary,
    /// The library is mapped and has opened no device yet, so no socket is accelerated.
    NoDevice,
    /// These sockets stay in the kernel.
    InKernel(Vec<KernelSocket>),
    /// The library has opened its device, and no socket is in the kernel.
    Accelerated,
}

impl AccelerationEvidence {
    /// Judges a running command.
    ///
    /// VMA and XLIO keep a socket in the kernel beside each accelerated one, so there only a missing device counts.
    pub fn judge(&self, accelerator: &Accelerator) -> Acceleration {
        let in_kernel = || self.kernel_sockets.iter().filter(|socket| !socket.is_loopback()).cloned();
        if !self.has_library {
            return Acceleration::NoLibrary;
        }
        match accelerator {
            Accelerator::Onload(_) if in_kernel().next().is_some() => {
                Acceleration::InKernel(in_kernel().collect())
            }
            Accelerator::Vma | Accelerator::Xlio if self.device.is_none() && in_kernel().next().is_some() => {
                Acceleration::InKernel(in_kernel().collect())
            }
            _ if self.device.is_none() => Acceleration::NoDevice,
            _ => Acceleration::Accelerated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(local: &str, remote: &str) -> KernelSocket {
        KernelSocket { protocol: "tcp", local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn preloaded_is_not_accelerated() {
        let onload = Accelerator::Onload("latency".into());
        let far = socket("10.0.0.1:4000", "10.0.0.2:5000");
        let near = socket("127.0.0.1:4000", "127.0.0.1:5000");
        let mut seen = AccelerationEvidence::default();
        assert_eq!(seen.judge(&onload), Acceleration::NoLibrary);
        seen.has_library = true;
        assert_eq!(seen.judge(&onload), Acceleration::NoDevice);
        seen.device = Some("/dev/onload".into());
        seen.kernel_sockets = vec![near];
        assert_eq!(seen.judge(&onload), Acceleration::Accelerated, "loopback is never accelerated");
        seen.kernel_sockets.push(far.clone());
        assert_eq!(seen.judge(&onload), Acceleration::InKernel(vec![far.clone()]));
        assert_eq!(
            seen.judge(&Accelerator::Vma),
            Acceleration::Accelerated,
            "VMA keeps a socket in the kernel"
        );
        seen.device = None;
        assert_eq!(seen.judge(&Accelerator::Xlio), Acceleration::InKernel(vec![far]));
    }

    #[test]
    fn listening_sockets_show_one_address() {
        assert_eq!(socket("0.0.0.0:80", "0.0.0.0:0").to_string(), "tcp 0.0.0.0:80");
        assert_eq!(socket("10.0.0.1:1", "10.0.0.2:2").to_string(), "tcp 10.0.0.1:1 to 10.0.0.2:2");
    }
}
