//! The tracepoints that are read, and their meaning.

use super::{Activity, Vector};

/// A tracepoint: its location below `events/`, and the meaning of its records.
#[derive(Debug, Clone, Copy)]
pub struct Tracepoint {
    pub system: &'static str,
    pub name: &'static str,
    pub(super) says: Says,
}

impl Tracepoint {
    /// True if every trace records it. The others are switched on where they are needed, with a filter.
    pub fn is_default(&self) -> bool {
        !matches!(self.says, Says::Wakes)
    }

    /// "sched/sched_switch", its path below `events/`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.system, self.name)
    }
}

/// Conversion of a record to a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Says {
    /// An activity starts that this field identifies.
    Enters(&'static str, fn(u64) -> Activity),
    /// An activity ends that this field identifies; 0 if the record has no such field.
    Exits(&'static str, fn(u64) -> Activity),
    /// A function starts that another CPU requested: "func", and the request's address "csd".
    Calls,
    /// A device interrupt's handler starts: "irq" and "name".
    EntersIrq,
    /// An interrupt of the processor starts.
    EntersVector(Vector),
    ExitsVector(Vector),
    /// An interrupt from another CPU starts, whose purpose is a string given by its address: "reason".
    EntersIpi,
    ExitsIpi,
    /// An NMI's handler took "`delta_ns`".
    TookNmi,
    Faults,
    /// A signal is delivered to the running thread: "sig".
    Delivers,
    Switches,
    /// The kernel starts to wake a thread: "pid".
    Wakes,
}

const fn row(system: &'static str, name: &'static str, says: Says) -> Tracepoint {
    Tracepoint { system, name, says }
}

/// Every tracepoint that is read. Those that a kernel lacks are left out on that kernel.
pub const TRACEPOINTS: &[Tracepoint] = &[
    row("sched", "sched_switch", Says::Switches),
    row("irq", "irq_handler_entry", Says::EntersIrq),
    row("irq", "irq_handler_exit", Says::Exits("irq", irq)),
    row("irq", "softirq_entry", Says::Enters("vec", softirq)),
    row("irq", "softirq_exit", Says::Exits("vec", softirq)),
    row("irq", "tasklet_entry", Says::Enters("func", Activity::Tasklet)),
    row("irq", "tasklet_exit", Says::Exits("func", Activity::Tasklet)),
    row("irq_vectors", "local_timer_entry", Says::EntersVector(Vector::LocalTimer)),
    row("irq_vectors", "local_timer_exit", Says::ExitsVector(Vector::LocalTimer)),
    row("irq_vectors", "reschedule_entry", Says::EntersVector(Vector::Reschedule)),
    row("irq_vectors", "reschedule_exit", Says::ExitsVector(Vector::Reschedule)),
    row("irq_vectors", "call_function_entry", Says::EntersVector(Vector::CallFunction)),
    row("irq_vectors", "call_function_exit", Says::ExitsVector(Vector::CallFunction)),
    row("irq_vectors", "call_function_single_entry", Says::EntersVector(Vector::CallFunctionSingle)),
    row("irq_vectors", "call_function_single_exit", Says::ExitsVector(Vector::CallFunctionSingle)),
    row("irq_vectors", "irq_work_entry", Says::EntersVector(Vector::IrqWork)),
    row("irq_vectors", "irq_work_exit", Says::ExitsVector(Vector::IrqWork)),
    row("irq_vectors", "thermal_apic_entry", Says::EntersVector(Vector::Thermal)),
    row("irq_vectors", "thermal_apic_exit", Says::ExitsVector(Vector::Thermal)),
    row("irq_vectors", "threshold_apic_entry", Says::EntersVector(Vector::Threshold)),
    row("irq_vectors", "threshold_apic_exit", Says::ExitsVector(Vector::Threshold)),
    row("irq_vectors", "deferred_error_apic_entry", Says::EntersVector(Vector::DeferredError)),
    row("irq_vectors", "deferred_error_apic_exit", Says::ExitsVector(Vector::DeferredError)),
    row("irq_vectors", "error_apic_entry", Says::EntersVector(Vector::ErrorApic)),
    row("irq_vectors", "error_apic_exit", Says::ExitsVector(Vector::ErrorApic)),
    row("irq_vectors", "spurious_apic_entry", Says::EntersVector(Vector::SpuriousApic)),
    row("irq_vectors", "spurious_apic_exit", Says::ExitsVector(Vector::SpuriousApic)),
    row("irq_vectors", "x86_platform_ipi_entry", Says::EntersVector(Vector::PlatformIpi)),
    row("irq_vectors", "x86_platform_ipi_exit", Says::ExitsVector(Vector::PlatformIpi)),
    row("ipi", "ipi_entry", Says::EntersIpi),
    row("ipi", "ipi_exit", Says::ExitsIpi),
    row("nmi", "nmi_handler", Says::TookNmi),
    row("csd", "csd_function_entry", Says::Calls),
    row("csd", "csd_function_exit", Says::Exits("func", Activity::CallFunction)),
    row("timer", "hrtimer_expire_entry", Says::Enters("function", Activity::Hrtimer)),
    row("timer", "hrtimer_expire_exit", Says::Exits("function", Activity::Hrtimer)),
    row("timer", "timer_expire_entry", Says::Enters("function", Activity::Timer)),
    row("timer", "timer_expire_exit", Says::Exits("function", Activity::Timer)),
    row("workqueue", "workqueue_execute_start", Says::Enters("function", Activity::Work)),
    row("workqueue", "workqueue_execute_end", Says::Exits("function", Activity::Work)),
    row("exceptions", "page_fault_user", Says::Faults),
    row("exceptions", "page_fault_kernel", Says::Faults),
    row("signal", "signal_deliver", Says::Delivers),
    row("sched", "sched_waking", Says::Wakes),
];

fn irq(number: u64) -> Activity {
    Activity::Irq(u32::try_from(number).unwrap_or(u32::MAX))
}

fn softirq(number: u64) -> Activity {
    Activity::Softirq(u8::try_from(number).unwrap_or(u8::MAX))
}

pub(super) fn signal(number: u64) -> Activity {
    Activity::Signal(u8::try_from(number).unwrap_or(u8::MAX))
}

/// The kind of interrupt from another CPU for a reason of aarch64's `ipi_entry` (kernel:
/// arch/arm64/kernel/smp.c).
pub(super) fn vector_of_reason(reason: &str) -> Vector {
    match reason {
        "Rescheduling interrupts" => Vector::Reschedule,
        "Function call interrupts" => Vector::CallFunction,
        "IRQ work interrupts" => Vector::IrqWork,
        _ => Vector::OtherIpi,
    }
}
