//! Round trips over sockets and pipes, measured.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bpf;
mod calls;
mod choose;
mod client;
mod compare;
mod control;
mod core_to_core;
mod error;
mod facts;
mod foreign;
mod link;
mod parts;
mod ping;
mod place;
mod pong;
mod ring;
pub mod route;
mod server;
mod session;
mod sockets;
mod stamps;
mod stream;
mod watch;
mod xdp;

pub use choose::{ChooseEvent, ChooseOptions, run as run_choose};
pub use client::{ClientOptions, run as run_client};
pub use compare::{CompareError, CompareOptions, SideOptions, rows_of, run as run_compare};
pub use error::PingpongError;
pub use server::{ServerEvent, ServerOptions, run as run_server};
pub use sockets::everywhere;
pub use stream::{StreamClientOptions, run as run_stream};
