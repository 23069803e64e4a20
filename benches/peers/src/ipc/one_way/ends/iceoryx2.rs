//! iceoryx2: publish and subscribe over shared memory; with events for receivers that sleep.

use super::{Bytes, Channel, Transport};
use crate::ipc::one_way::End;
use anyhow::{Context, anyhow};
use iceoryx2::{
    port::{listener::Listener, notifier::Notifier, publisher::Publisher, subscriber::Subscriber},
    prelude::*,
};
use std::{fmt::Debug, fmt::Display};

/// Not all of its errors implement `std::error::Error`.
pub fn told<T, E: Debug + Display>(what: &str, result: Result<T, E>) -> anyhow::Result<T> {
    result.map_err(|error| anyhow!("iceoryx2, {what}: {error} ({error:?})"))
}

/// Creates a node whose files are in the run's folder, and whose shared memory has a prefix of this run.
pub fn node(folder: &std::path::Path) -> anyhow::Result<Node<ipc::Service>> {
    set_log_level(LogLevel::Error);
    let mut config = Config::default();
    let text = folder.to_str().context("the folder's name is no text")?;
    let root = told("folder", Path::new(text.as_bytes()))?;
    config.global.set_root_path(&root);
    let name = super::super::prefix(folder);
    config.global.prefix = told("prefix", FileName::new(name.as_bytes()))?;
    told("node", NodeBuilder::new().config(&config).create::<ipc::Service>())
}

fn names(channel: &Channel) -> [&'static str; 2] {
    match channel.end {
        End::Ping => ["there", "back"],
        End::Echo => ["back", "there"],
    }
}

/// One topic in each direction.
#[derive(Debug)]
pub struct PubSub {
    there: Publisher<ipc::Service, Bytes, ()>,
    back: Subscriber<ipc::Service, Bytes, ()>,
    node: Node<ipc::Service>,
}

impl PubSub {
    pub fn new(channel: &Channel) -> anyhow::Result<Self> {
        let node = node(&channel.folder)?;
        let open = |name: &str| {
            let name = told("name", ServiceName::new(name))?;
            told("topic", node.service_builder(&name).publish_subscribe::<Bytes>().open_or_create())
        };
        let [there, back] = names(channel);
        let there = told("publisher", open(there)?.publisher_builder().create())?;
        let back = told("subscriber", open(back)?.subscriber_builder().create())?;
        channel.meet(1);
        Ok(Self { there, back, node })
    }

    fn try_receive(&self, message: &mut Bytes) -> anyhow::Result<bool> {
        let sample = told("receive", self.back.receive())?;
        if let Some(sample) = &sample {
            *message = **sample;
        }
        Ok(sample.is_some())
    }
}

impl Transport for PubSub {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        told("send", self.there.send_copy(*message))?;
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        loop {
            if self.try_receive(message)? {
                return Ok(());
            }
            lowlat_ipc::relax();
        }
    }
}

/// The same, with an event for each message.
#[derive(Debug)]
pub struct Evented {
    topics: PubSub,
    there: Notifier<ipc::Service>,
    back: Listener<ipc::Service>,
}

impl Evented {
    pub fn new(channel: &Channel) -> anyhow::Result<Self> {
        let topics = PubSub::new(channel)?;
        let open = |name: &str| {
            let name = told("name", ServiceName::new(&format!("{name}/event")))?;
            told("event", topics.node.service_builder(&name).event().open_or_create())
        };
        let [there, back] = names(channel);
        let there = told("notifier", open(there)?.notifier_builder().create())?;
        let back = told("listener", open(back)?.listener_builder().create())?;
        channel.meet(2);
        Ok(Self { topics, there, back })
    }
}

impl Transport for Evented {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        self.topics.send(message)?;
        told("notify", self.there.notify())?;
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        loop {
            if self.topics.try_receive(message)? {
                return Ok(());
            }
            told("wait", self.back.blocking_wait(|_| ()))?;
        }
    }
}
