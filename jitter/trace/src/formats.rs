//! The formats of one host, combined for a decoder.

use super::{
    EventFormat, Field, FormatError, PageLayout, TRACEPOINTS, Tracepoint, Vector, check_entry_layout,
    events::{Says, vector_of_reason},
};
use lowlat_host::Unparsable;
use std::collections::BTreeMap;

/// Maximum number of strings kept of `printk_formats`.
const REASONS_MAX: usize = 64;

/// The trace formats of a host, reduced to the events that are read.
#[derive(Debug, Clone)]
pub struct TraceFormats {
    /// The header of a sub-buffer.
    pub page: PageLayout,
    /// The readable tracepoints of this kernel.
    pub present: Vec<&'static Tracepoint>,
    /// Tracepoints that it lacks, as "system/name".
    pub absent: Vec<String>,
    /// Tracepoints in an unknown format, which are not read.
    pub unusable: Vec<FormatError>,
    pub(super) type_offset: usize,
    pub(super) known: BTreeMap<u16, Known>,
    pub(super) ipi_reasons: BTreeMap<u64, Vector>,
}

/// Fields needed to read one event's record.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) says: Says,
    value: Option<Field>,
    name: Option<Field>,
    /// The request that a called function belongs to; `None` if the format does not contain it.
    request: Option<Field>,
    /// The thread that was on the CPU; `None` if the format does not contain it.
    pid: Option<Field>,
    pub(super) threads: Option<Threads>,
    /// The state of a `sched_switch`'s previous thread; `None` if the format does not contain it.
    state: Option<Field>,
}

/// The fields of the two threads of a `sched_switch`: the previous and the next one.
pub(super) type Threads = [ThreadFields; 2];

#[derive(Debug, Clone)]
pub(super) struct ThreadFields {
    pub(super) comm: Field,
    pub(super) pid: Field,
    pub(super) prio: Field,
}

impl Known {
    /// The event's number; 0 if its format has none.
    pub(super) fn number(&self, record: &[u8]) -> Option<u64> {
        self.value.as_ref().map_or(Some(0), |field| field.number(record))
    }

    /// The address of a call's request; 0 if its format has none.
    pub(super) fn request(&self, record: &[u8]) -> Option<u64> {
        self.request.as_ref().map_or(Some(0), |field| field.number(record))
    }

    /// The thread that was on the CPU when the event was written.
    pub(super) fn running(&self, record: &[u8]) -> Option<i32> {
        // Between the switch event and the switch itself an NMI still sees the previous thread.
        let field = self.pid.as_ref().filter(|_| !matches!(self.says, Says::TookNmi))?;
        i32::try_from(field.number(record)?.cast_signed()).ok()
    }

    /// The state in which the previous thread of a switch leaves; `None` if its format has none.
    pub(super) fn state(&self, record: &[u8]) -> Option<u64> {
        self.state.as_ref()?.number(record)
    }

    pub(super) fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        self.name.as_ref()?.text(record)
    }
}

impl TraceFormats {
    /// Parses `events/header_page`, `events/header_event`, and the `format` of each of [`TRACEPOINTS`] that
    /// `format_of` has. `printk_formats` contains the reasons of aarch64's interrupts between CPUs, and is
    /// empty elsewhere.
    ///
    /// # Errors
    /// [`FormatError`] if the sub-buffers cannot be read. Unreadable events are listed in
    /// [`TraceFormats::unusable`].
    pub fn parse(
        header_page: &str,
        header_event: &str,
        printk_formats: &str,
        mut format_of: impl FnMut(&Tracepoint) -> Option<String>,
    ) -> Result<Self, FormatError> {
        check_entry_layout(header_event)?;
        let mut formats = Self {
            page: PageLayout::parse(header_page)?,
            present: Vec::new(),
            absent: Vec::new(),
            unusable: Vec::new(),
            type_offset: 0,
            known: BTreeMap::new(),
            ipi_reasons: ipi_reasons(printk_formats),
        };
        for tracepoint in TRACEPOINTS {
            match format_of(tracepoint) {
                None => formats.absent.push(tracepoint.path()),
                Some(text) => {
                    if let Err(error) = formats.add(tracepoint, &text) {
                        formats.unusable.push(error);
                    }
                }
            }
        }
        Ok(formats)
    }

    fn add(&mut self, tracepoint: &'static Tracepoint, text: &str) -> Result<(), FormatError> {
        let path = tracepoint.path();
        let format = EventFormat::parse(&path, text)?;
        let error = |expected: &str| FormatError(Unparsable::new(&path, text, expected));
        let type_offset = type_offset_of(&format).ok_or_else(|| error("a common_type of 2 bytes"))?;
        if !self.known.is_empty() && type_offset != self.type_offset {
            return Err(error("common_type where the other events have it"));
        }
        let known = Known::of(tracepoint.says, &format)
            .map_err(|field| error(&format!("a readable field \"{field}\"")))?;
        if self.known.contains_key(&format.id) {
            return Err(error("an ID that no other event has"));
        }
        self.type_offset = type_offset;
        self.known.insert(format.id, known);
        self.present.push(tracepoint);
        Ok(())
    }
}

impl Known {
    /// The fields needed to read an event, or the name of the missing one.
    fn of(says: Says, format: &EventFormat) -> Result<Self, &'static str> {
        let number = |name: &'static str| {
            format.field(name).filter(|field| matches!(field.size, 1 | 2 | 4 | 8)).cloned().ok_or(name)
        };
        let thread = |comm: &'static str, pid: &'static str, prio: &'static str| {
            let comm = format.field(comm).cloned().ok_or(comm)?;
            Ok::<_, &str>(ThreadFields { comm, pid: number(pid)?, prio: number(prio)? })
        };
        let pid = number("common_pid").ok();
        let mut known =
            Self { says, value: None, name: None, request: None, pid, threads: None, state: None };
        match says {
            Says::Enters(field, _) => known.value = Some(number(field)?),
            Says::Calls => {
                known.value = Some(number("func")?);
                known.request = number("csd").ok();
            }
            Says::Exits(field, _) => known.value = number(field).ok(),
            Says::EntersIrq => {
                known.value = Some(number("irq")?);
                known.name = format.field("name").cloned();
            }
            Says::EntersIpi | Says::ExitsIpi => known.value = Some(number("reason")?),
            Says::TookNmi => known.value = Some(number("delta_ns")?),
            Says::Delivers => known.value = Some(number("sig")?),
            Says::Wakes => known.value = Some(number("pid")?),
            Says::EntersVector(_) | Says::ExitsVector(_) | Says::Faults => {}
            Says::Switches => {
                known.state = number("prev_state").ok();
                known.threads = Some([
                    thread("prev_comm", "prev_pid", "prev_prio")?,
                    thread("next_comm", "next_pid", "next_prio")?,
                ]);
            }
        }
        Ok(known)
    }
}

/// Returns the offset of the format's number in an event's record.
pub(super) fn type_offset_of(format: &EventFormat) -> Option<usize> {
    format.field("common_type").filter(|field| field.size == 2).map(|field| field.offset)
}

/// Parses lines such as `0xffff800081c3e6a8 : "Rescheduling interrupts"`; only those that name a
/// distinguished interrupt between CPUs are kept.
pub(super) fn ipi_reasons(printk_formats: &str) -> BTreeMap<u64, Vector> {
    let reason = |line: &str| {
        let (address, text) = line.split_once(" : ")?;
        let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
        let vector = vector_of_reason(text.trim().strip_prefix('"')?.strip_suffix('"')?);
        (vector != Vector::OtherIpi).then_some((address, vector))
    };
    printk_formats.lines().filter_map(reason).take(REASONS_MAX).collect()
}
