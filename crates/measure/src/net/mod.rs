//! Round trips over sockets and pipes, measured.

mod calls;
mod client;
mod control;
mod core_to_core;
mod error;
mod facts;
mod link;
mod ping;
mod place;
mod pong;
mod ring;
mod server;
mod session;
mod sockets;
mod watch;

pub use client::{ClientOptions, run as run_client};
pub use error::PingpongError;
pub use place::step_aside;
pub use server::{ServerEvent, ServerOptions, run as run_server};
pub use sockets::everywhere;
