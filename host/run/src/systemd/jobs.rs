//! Starts and stops units: systemd queues a job and reports its end.

use super::connection::{self, MANAGER};
use std::{future::poll_fn, pin::pin};
use zbus::{
    Connection, MatchRule, MessageStream, export::futures_core::Stream, message::Type, wire::OwnedObjectPath,
};

/// Maximum number of unread job results; those of other clients arrive too.
const WAITING_MAX: usize = 4_096;

/// Calls `method` for a unit, and waits for the end of its job; returns the result of the job.
pub(super) async fn run(
    connection: &Connection,
    method: &str,
    unit: &str,
    mode: &str,
) -> zbus::Result<String> {
    // Otherwise systemd sends no signals over the bus.
    connection::call(connection, "Subscribe", &()).await?;
    let rule = MatchRule::builder().msg_type(Type::Signal).interface(MANAGER).member("JobRemoved").build()?;
    // Before the call, because the job may have ended when the call returns.
    let ends = MessageStream::for_match_rule(rule, connection, WAITING_MAX.try_into().ok()).await?;
    let job: OwnedObjectPath =
        connection::call(connection, method, &(unit, mode)).await?.body().deserialize()?;
    let mut ends = pin!(ends);
    loop {
        let Some(message) = poll_fn(|context| ends.as_mut().poll_next(context)).await else {
            let why = "the connection ended before the job did";
            return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, why).into());
        };
        let message = message?;
        let (_, ended, _, result): (u32, OwnedObjectPath, String, String) = message.body().deserialize()?;
        if ended == job {
            return Ok(result);
        }
    }
}
