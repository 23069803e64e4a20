//! Decodes the sub-buffers of senders.

use super::{Channel, Frames, Level, Send, SendFormats, SendStep, Targets, formats::Kind};
use crate::{Entry, Field, MissedEvents, Page, TickMap};

/// Bytes of an address on a stack.
const ADDRESS_BYTES: usize = 8;

/// Decodes the sub-buffers of any number of senders.
#[derive(Debug)]
pub struct SendDecoder {
    formats: SendFormats,
    clock: TickMap,
    unreadable_count: u64,
}

/// Progress in the events of one CPU: the ticks of the last one.
pub type SendCursor = u64;

impl SendDecoder {
    /// Creates a decoder for these formats; `clock` converts stamps to ticks.
    pub fn new(formats: SendFormats, clock: TickMap) -> Self {
        Self { formats, clock, unreadable_count: 0 }
    }

    /// Uses another map for later stamps.
    pub fn set_clock(&mut self, clock: TickMap) {
        self.clock = clock;
    }

    /// Records and sub-buffers that could not be read.
    pub fn unreadable_count(&self) -> u64 {
        self.unreadable_count
    }

    /// Passes the events of one sub-buffer of this CPU to `each`, in order of time. Where events are missing
    /// or unreadable it passes a [`SendStep::Lost`].
    pub fn page(&mut self, cpu: u32, cursor: &mut SendCursor, bytes: &[u8], mut each: impl FnMut(&Send<'_>)) {
        let lost = |since, ticks| {
            let step = SendStep::Lost { since };
            Send { ticks, thread: 0, level: Level::Thread, step }
        };
        let Ok(page) = Page::parse(bytes, &self.formats.page) else {
            self.unreadable_count += 1;
            return each(&lost(*cursor, *cursor));
        };
        if page.missed != MissedEvents::Nothing {
            let since = *cursor;
            *cursor = (*cursor).max(self.clock.ticks(page.stamp));
            each(&lost(since, *cursor));
        }
        for entry in page.entries() {
            let Ok(entry) = entry else {
                self.unreadable_count += 1;
                each(&lost(*cursor, *cursor));
                break;
            };
            *cursor = (*cursor).max(self.clock.ticks(entry.stamp));
            match self.send(cpu, *cursor, &entry) {
                Ok(Some(send)) => each(&send),
                Ok(None) => {}
                Err(Short) => {
                    self.unreadable_count += 1;
                    each(&lost(*cursor, *cursor));
                }
            }
        }
    }

    /// A record as an event; `None` if it is not an event of senders.
    fn send<'a>(&self, cpu: u32, ticks: u64, entry: &Entry<'a>) -> Result<Option<Send<'a>>, Short> {
        let formats = &self.formats;
        let record = entry.record;
        let id = record.get(formats.type_offset..).and_then(|rest| rest.first_chunk::<2>()).ok_or(Short)?;
        let Some((kind, fields)) = formats.known.get(&u16::from_ne_bytes(*id)) else { return Ok(None) };
        let number = |field: &Field| field.number(record).ok_or(Short);
        let thread = i32::try_from(number(&formats.thread)?.cast_signed()).map_err(|_| Short)?;
        let level = Level::of_flags(number(&formats.flags)?);
        if let (Kind::SendOne, [target, ..]) = (kind, fields.as_slice())
            && number(target)? == u64::from(cpu)
        {
            // A CPU that interrupts itself has deferred work to that moment; no other CPU requested it.
            return Ok(None);
        }
        let step = self.step(*kind, fields, record).ok_or(Short)?;
        Ok(Some(Send { ticks, thread, level, step }))
    }

    /// Meaning of a record; `None` if it is too short for its fields.
    fn step<'a>(&self, kind: Kind, fields: &[Field], record: &'a [u8]) -> Option<SendStep<'a>> {
        let number = |field: &Field| field.number(record);
        Some(match (kind, fields) {
            (Kind::Queue, [cpu, function, request, callsite]) => SendStep::Queues {
                cpu: u32::try_from(number(cpu)?).ok()?,
                function: number(function)?,
                request: number(request)?,
                callsite: number(callsite)?,
            },
            (Kind::SendOne, [cpu, callsite, callback]) => {
                let callback = number(callback)?;
                SendStep::Sends {
                    targets: Targets::One(u32::try_from(number(cpu)?).ok()?),
                    channel: Some(if callback == 0 { Channel::Reschedule } else { Channel::Call }),
                    callsite: number(callsite)?,
                    callback,
                }
            }
            (Kind::SendMany, [mask, callsite, callback]) => SendStep::Sends {
                targets: Targets::Mask(mask.bytes(record)?),
                channel: Some(Channel::Call),
                callsite: number(callsite)?,
                callback: number(callback)?,
            },
            (Kind::Raise, [mask, reason]) => SendStep::Sends {
                targets: Targets::Mask(mask.bytes(record)?),
                channel: self.formats.channel_of(number(reason)?),
                callsite: 0,
                callback: 0,
            },
            (Kind::Wake, [thread]) => SendStep::Wakes(i32::try_from(number(thread)?.cast_signed()).ok()?),
            (Kind::Exit, [comm]) => SendStep::Ends(comm.text(record)?),
            (Kind::Stack, [count, caller]) => {
                let count = usize::try_from(number(count)?).ok()?;
                let frames = record.get(caller.offset..)?;
                let bytes = frames.len().min(count.saturating_mul(ADDRESS_BYTES));
                SendStep::Stack(Frames(frames.get(..bytes)?))
            }
            _ => return None,
        })
    }
}

/// A record that is too short for its fields.
struct Short;
