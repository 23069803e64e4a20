//! iceoryx2: a topic with a buffer for each subscriber, of which the oldest is overwritten.

use super::{Counted, Got, Shared, opened, read as read_all, write as write_all};
use crate::ipc::one_way::ends::iceoryx2::{node, told};
use iceoryx2::{port::update_connections::UpdateConnections as _, prelude::*};
use std::{path::Path, time::Duration};

/// Messages that a subscriber may be behind.
const BUFFER: usize = 4096;
const SUBSCRIBERS_MAX: usize = 16;

fn topic<const WORDS: usize>(
    node: &Node<ipc::Service>,
) -> anyhow::Result<
    iceoryx2::service::port_factory::publish_subscribe::PortFactory<ipc::Service, [u64; WORDS], ()>,
> {
    let name = told("name", ServiceName::new("throughput"))?;
    let topic = node.service_builder(&name).publish_subscribe::<[u64; WORDS]>();
    let topic = topic.subscriber_max_buffer_size(BUFFER).max_subscribers(SUBSCRIBERS_MAX).max_publishers(1);
    told("topic", topic.open_or_create())
}

/// The writer waits until its readers have subscribed: iceoryx2 gives a late one nothing.
pub fn write<const WORDS: usize>(
    shared: &Shared,
    folder: &Path,
    readers: u32,
    time: Duration,
) -> anyhow::Result<Counted> {
    let node = node(folder)?;
    let topic = topic::<WORDS>(&node)?;
    let publisher = told("publisher", topic.publisher_builder().create())?;
    let wanted = usize::try_from(readers)?;
    opened(|| (topic.dynamic_config().number_of_subscribers() >= wanted).then_some(()))?;
    told("connections", publisher.update_connections())?;
    write_all::<WORDS>(shared, time, |message| {
        told("send", publisher.send_copy(*message))?;
        Ok(())
    })
}

pub fn read<const WORDS: usize>(shared: &Shared, folder: &Path) -> anyhow::Result<Counted> {
    let node = node(folder)?;
    let topic = topic::<WORDS>(&node)?;
    let subscriber = told("subscriber", topic.subscriber_builder().buffer_size(BUFFER).create())?;
    let mut sum = 0_u64;
    let counted = read_all(shared, || {
        let sample = told("receive", subscriber.receive())?;
        // As the others copy it.
        Ok(sample.map_or(Got::Nothing, |sample| {
            sum = sum.wrapping_add(std::hint::black_box(*sample)[0]);
            Got::Message
        }))
    });
    std::hint::black_box(sum);
    counted
}
