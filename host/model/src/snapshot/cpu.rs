//! Processor model, clocks, frequency scaling and idle states.

use crate::{CpuSet, Reading};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Models and clocks of the processors.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuFacts {
    /// `vendor_id` of /proc/cpuinfo, or the implementer on aarch64: "AuthenticAMD".
    pub vendor: Reading<String>,
    /// `model name`: "AMD EPYC 7F32 8-Core Processor"; on aarch64 by implementer and part: "Arm Neoverse-N1".
    pub model_name: Reading<String>,
    /// `cpu family` of /proc/cpuinfo (x86).
    pub family: Reading<u32>,
    /// `model` of /proc/cpuinfo (x86).
    pub model: Reading<u32>,
    /// `stepping` of /proc/cpuinfo (x86).
    pub stepping: Reading<u32>,
    /// `microcode` of the first CPU: "0x830107c".
    pub microcode: Reading<String>,
    /// True if all CPUs report the same microcode.
    pub microcode_uniform: Reading<bool>,
    /// `flags` (x86) or `Features` (aarch64) of the first CPU.
    pub flags: Reading<BTreeSet<String>>,
    /// State of each vulnerability, by name (/sys/devices/system/cpu/vulnerabilities).
    pub vulnerabilities: BTreeMap<String, Reading<String>>,
    /// The clock source in use: "tsc".
    pub clocksource: Reading<String>,
    pub clocksources_available: Reading<Vec<String>>,
    /// Frequency scaling, one entry per policy.
    pub frequency: Vec<CpuFreq>,
    /// True if the processor may exceed its base frequency (cpufreq/boost, or the inverse of intel_pstate/no_turbo).
    pub boost: Reading<bool>,
    /// /sys/devices/system/cpu/smt/control: "on", "off", "forceoff", "notsupported", "notimplemented".
    pub smt_control: Reading<String>,
    /// The cpuidle driver: "acpi_idle", "intel_idle", "none".
    pub idle_driver: Reading<String>,
    /// The cpuidle governor in use: "menu".
    pub idle_governor: Reading<String>,
    /// Idle states by name over all CPUs.
    pub idle_states: Vec<IdleState>,
}

impl CpuFacts {
    /// True if the first CPU has this flag; `Absent` if the flags are unknown.
    pub fn has_flag(&self, flag: &str) -> Reading<bool> {
        self.flags.as_ref().map(|flags| flags.contains(flag))
    }

    /// True if the processor is AMD's (or Hygon's).
    pub fn is_amd(&self) -> bool {
        matches!(self.vendor.text(), "AuthenticAMD" | "HygonGenuine")
    }

    pub fn is_intel(&self) -> bool {
        self.vendor.text() == "GenuineIntel"
    }
}

/// A cpufreq policy and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuFreq {
    /// The CPUs that the policy controls.
    pub cpus: CpuSet,
    /// Scaling driver: "acpi-cpufreq", "amd-pstate-epp", "intel_pstate", …
    pub driver: Reading<String>,
    /// Scaling governor: "performance", "powersave", "schedutil", …
    pub governor: Reading<String>,
    /// Energy/performance preference, if the driver has one.
    pub energy_performance_preference: Reading<String>,
    /// Current lower limit of the frequency.
    pub scaling_min_khz: Reading<u64>,
    /// Current upper limit of the frequency.
    pub scaling_max_khz: Reading<u64>,
    /// Lowest frequency of the hardware.
    pub cpuinfo_min_khz: Reading<u64>,
    /// Highest frequency of the hardware.
    pub cpuinfo_max_khz: Reading<u64>,
}

/// One idle state, by name, with the CPUs that have it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IdleState {
    /// Name of the state: "POLL", "C1", "C2", …
    pub name: String,
    /// Time to leave it, according to the driver.
    pub exit_latency_us: Reading<u64>,
    /// CPUs that have the state.
    pub cpus: CpuSet,
    /// CPUs on which it may be entered.
    pub cpus_enabled: CpuSet,
}
