//! A second instance on all CPUs that traces only what they send to the measured ones.

use super::{
    Recording, TraceError, TraceOptions, Tracefs,
    instance::Instance,
    start::{buffer_kb, set_up},
};
use lowlat_host::{CpuId, CpuSet};
use lowlat_trace::{SendDecoder, SendEvent, SendFormats, TickMap};
use std::sync::Arc;

/// Longest filter that is written; the kernel takes a page. Without a filter there are more events.
const FILTER_BYTES_MAX: usize = 3_500;

/// A trace of what CPUs send to each other. It is removed when dropped.
#[derive(Debug)]
pub struct SendTracing {
    pub recording: Recording,
    pub(super) formats: SendFormats,
}

impl SendTracing {
    /// Creates an instance that traces what the CPUs of `options` send to `targets` and, if `with_wakes` is set,
    /// wakeups of threads there, with recording still off. `is_alone`: nothing else but lowlat traces on this host.
    /// `Ok(None)` if this kernel traces neither.
    ///
    /// # Errors
    /// [`TraceError`]; everything created until then is removed again.
    pub fn start(
        tracefs: &Arc<Tracefs>,
        options: &TraceOptions,
        targets: &CpuSet,
        is_alone: bool,
        with_wakes: bool,
    ) -> Result<Option<Self>, TraceError> {
        let Some(formats) = read_formats(tracefs, with_wakes)? else { return Ok(None) };
        let buffer_kb_per_cpu = buffer_kb(options)?;
        let recording = Recording::make(tracefs, &options.cpus)?;
        set_up(&recording.instance, options, buffer_kb_per_cpu, is_alone)?;
        for event in formats.present.iter().filter(|event| event.is_switched()) {
            switch(&recording.instance, event, targets)?;
        }
        Ok(Some(Self { recording, formats }))
    }

    /// Creates a decoder for these buffers; `clock` converts time stamps to ticks.
    pub fn decoder(&self, clock: TickMap) -> SendDecoder {
        SendDecoder::new(self.formats.clone(), clock)
    }

    /// True if interrupts between CPUs are traced.
    pub fn has_sends(&self) -> bool {
        self.formats.has_sends()
    }
}

fn read_formats(tracefs: &Tracefs, with_wakes: bool) -> Result<Option<SendFormats>, TraceError> {
    let (page, event) = (tracefs.read("events/header_page")?, tracefs.read("events/header_event")?);
    let printk_formats = tracefs.text("printk_formats").unwrap_or_default();
    let format_of = |path: &str| tracefs.text(&format!("events/{path}/format")).ok();
    Ok(SendFormats::parse(&page, &event, &printk_formats, with_wakes, format_of)?)
}

/// Switches an event on, where possible only for what concerns the targets.
fn switch(instance: &Instance, event: &SendEvent, targets: &CpuSet) -> Result<(), TraceError> {
    let file = |name: &str| format!("events/{}/{name}", event.path);
    let filter =
        event.target.map(|field| filter(field, targets)).filter(|text| text.len() <= FILTER_BYTES_MAX);
    // Kernels before 6.6 have no filter for masks. The reader ignores what concerns other CPUs.
    let filter = filter.filter(|text| instance.write(&file("filter"), text).is_ok());
    if event.has_stack {
        let elsewhere = event.target.filter(|_| event.is_wake()).map(|field| elsewhere(field, targets));
        let filter = elsewhere.filter(|text| text.len() <= FILTER_BYTES_MAX).or(filter);
        let trigger = filter.map_or_else(|| "stacktrace".to_owned(), |text| format!("stacktrace if {text}"));
        // Without stacks, functions still have the address that asked for them.
        let _ = instance.write(&file("trigger"), &trigger);
    }
    instance.write(&file("enable"), "1")
}

/// A filter for events that concern one of the targets: "cpu >= 1 && cpu <= 3 || cpu == 7", or for a mask
/// "cpumask & CPUS{1-3,7}".
fn filter(field: &str, targets: &CpuSet) -> String {
    if field == "cpumask" {
        return format!("{field} & CPUS{{{}}}", targets.to_list());
    }
    let range = |range: &str| match range.split_once('-') {
        Some((first, last)) => format!("({field} >= {first} && {field} <= {last})"),
        None => format!("{field} == {range}"),
    };
    targets.to_list().split(',').map(range).collect::<Vec<_>>().join(" || ")
}

/// A filter for events that concern one of the targets and are not written on it.
fn elsewhere(field: &str, targets: &CpuSet) -> String {
    let one = |cpu: CpuId| format!("({field} == {cpu} && CPU != {cpu})");
    targets.iter().map(one).collect::<Vec<_>>().join(" || ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_the_targets() {
        let targets = CpuSet::parse_list("1-3,7").unwrap();
        assert_eq!(filter("dest_cpu", &CpuSet::of(2)), "dest_cpu == 2");
        assert_eq!(filter("cpu", &targets), "(cpu >= 1 && cpu <= 3) || cpu == 7");
        let pair = CpuSet::parse_list("1,7").unwrap();
        assert_eq!(
            elsewhere("target_cpu", &pair),
            "(target_cpu == 1 && CPU != 1) || (target_cpu == 7 && CPU != 7)"
        );
        assert_eq!(filter("cpumask", &targets), "cpumask & CPUS{1-3,7}");
    }
}
