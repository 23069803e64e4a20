//! Firmware settings as far as the operating system sees them.

use lowlat_host::{CpuSet, Reading, kernel_version::KernelVersion};
use lowlat_settings::{
    Context, Judgement, Setting, Verdict,
    judge::{command_line, is_polling, is_shallow, is_virtual, known, missing, no_command_line, satisfies},
};

/// Judges the vendor's word for the value that the operating system sees, by the evidence for it.
pub(super) fn seen(context: &Context<'_>, setting: &Setting, value: &str, by: &str) -> Judgement {
    let is_wanted = satisfies(context, &setting.want(context.profile), value);
    Judgement::new(if is_wanted { Verdict::Good } else { Verdict::Wrong }, value, by)
}

/// Judges a switch by its state.
pub(super) fn switch(context: &Context<'_>, setting: &Setting, is_on: bool, by: &str) -> Judgement {
    seen(context, setting, if is_on { "Enabled" } else { "Disabled" }, by)
}

/// An unknown judgement. Its reason is `why`, or in a virtual machine that fact.
pub(super) fn unseen(context: &Context<'_>, why: &str) -> Judgement {
    Judgement::unknown(if is_virtual(context) {
        "not visible from inside a virtual machine; ask the operator of its host"
    } else {
        why
    })
}

/// Judges settings that leave no trace.
pub(super) fn not_visible(context: &Context<'_>, _: &Setting) -> Judgement {
    unseen(context, "not visible from the OS; check the BIOS setup or use Redfish")
}

fn is_aarch64(context: &Context<'_>) -> bool {
    context.host.kernel.machine.text() == "aarch64"
}

/// Judges prefetchers, which are controlled by a model-specific register that no file shows.
pub(super) fn prefetcher(context: &Context<'_>, _: &Setting) -> Judgement {
    unseen(
        context,
        "set in a model-specific register that lowlat does not read; check the BIOS setup or use Redfish",
    )
}

/// Judges links between processors, which a host with one processor does not have.
pub(super) fn between_packages(context: &Context<'_>, setting: &Setting) -> Judgement {
    if context.host.topology.packages.len() == 1 {
        return Judgement::not_applicable("one processor, so it has no link to another");
    }
    not_visible(context, setting)
}

pub(super) fn boot_mode(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/firmware/efi";
    match context.host.firmware.is_uefi {
        Reading::Known(true) => seen(context, setting, "UEFI Mode", ""),
        Reading::Known(false) if is_aarch64(context) => Judgement::not_applicable(
            "started by a device tree without UEFI, so the host has no legacy BIOS mode",
        ),
        Reading::Known(false) => seen(context, setting, "Legacy BIOS Mode", "/sys/firmware/efi is missing"),
        ref other => missing(other, PATH),
    }
    .at(PATH)
}

pub(super) fn bios_version(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/sys/class/dmi/id/bios_version";
    let firmware = &context.host.firmware;
    match &firmware.bios_version {
        Reading::Known(version) => {
            let parts = [firmware.bios_vendor.text(), version, firmware.bios_date.text()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            Judgement::good(parts.join(" "))
        }
        Reading::Absent => Judgement::not_applicable("this host has no SMBIOS tables"),
        other => missing(other, PATH),
    }
    .at(PATH)
}

pub(super) fn hpet(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let Some(line) = command_line(context.host) else { return no_command_line(context.host) };
    match &context.host.cpu.clocksources_available {
        Reading::Known(sources) if sources.iter().any(|source| source == "hpet") => {
            switch(context, setting, true, "the kernel lists the clock source hpet")
        }
        Reading::Known(_) if line.has("nohpet") || line.last("hpet") == Some("disable") => {
            Judgement::unknown("the command line switches the HPET off, which hides the firmware's setting")
        }
        Reading::Known(_) => switch(context, setting, false, "the kernel lists no clock source hpet"),
        other => missing(other, PATH),
    }
    .at(PATH)
}

pub(super) fn x2apic(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/proc/cpuinfo";
    match context.host.cpu.has_flag("x2apic") {
        Reading::Known(true) => Judgement::good("flag x2apic present").at(PATH),
        Reading::Known(false) if is_aarch64(context) => {
            Judgement::not_applicable("an interrupt controller of x86 hosts only")
        }
        Reading::Known(false) => Judgement::unknown(
            "the flag x2apic is missing: the firmware, the hypervisor or nox2apic switched it off, or the \
             processor lacks it",
        )
        .at(PATH),
        other => missing(&other, PATH),
    }
}

pub(super) fn smt(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/cpu/smt/control";
    let topology = &context.host.topology;
    let (is_on, by) = match &context.host.cpu.smt_control {
        Reading::Known(control) => match control.as_str() {
            "notsupported" => (false, "off in the firmware, or the processor has one thread per core".into()),
            "off" | "forceoff" => (false, "switched off by the kernel; the firmware offers it".into()),
            _ if topology.cores.is_empty() => return Judgement::unknown("the cores are not known").at(PATH),
            control => (topology.has_smt(), format!("smt/control reads {control}")),
        },
        Reading::Absent if !topology.cores.is_empty() => (topology.has_smt(), "as the topology shows".into()),
        other => return missing(other, PATH),
    };
    switch(context, setting, is_on, &by).at(PATH)
}

pub(super) fn enabled_cores(context: &Context<'_>, _: &Setting) -> Judgement {
    let topology = &context.host.topology;
    let first_threads: CpuSet = topology.cores.iter().filter_map(|core| core.cpus.lowest()).collect();
    let count =
        |package: &lowlat_host::topology::Group| first_threads.intersection(&package.cpus).len().to_string();
    let counts: Vec<String> = topology.packages.iter().map(count).collect();
    let judgement = unseen(context, "compare the number of cores with the processor's data sheet");
    if counts.is_empty() {
        return judgement;
    }
    Judgement { observed: format!("cores per processor: {}", counts.join(", ")), ..judgement }
}

pub(super) fn iommu(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/class/iommu";
    if is_virtual(context) {
        return unseen(context, "").at(PATH);
    }
    let reading = &context.host.firmware.iommu_count;
    let Reading::Known(count) = reading else { return missing(reading, PATH) };
    if *count > 0 {
        return switch(context, setting, true, &format!("IOMMUs in use: {count}")).at(PATH);
    }
    let Some(line) = command_line(context.host) else { return no_command_line(context.host) };
    let is_off =
        ["iommu", "amd_iommu", "intel_iommu"].iter().any(|name| line.all(name).any(|v| v == Some("off")));
    if is_off {
        return Judgement::unknown(
            "the command line switches the IOMMU off, which hides the firmware's setting",
        )
        .at(PATH);
    }
    if !context.host.cpu.is_amd() && line.last("intel_iommu") != Some("on") {
        return Judgement::unknown(
            "the kernel may leave an Intel IOMMU off without intel_iommu=on, which hides the firmware's setting",
        )
        .at(PATH);
    }
    switch(context, setting, false, "the kernel found no IOMMU").at(PATH)
}

/// The flag of AMD-V or VT-x. Current kernels clear it when the firmware disables the feature; older ones keep it.
pub(super) fn virtualization_flag(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/proc/cpuinfo";
    let (flag, drops_since) = if context.host.cpu.is_amd() {
        ("svm", KernelVersion::new(6, 8))
    } else {
        ("vmx", KernelVersion::new(5, 6))
    };
    match context.host.cpu.has_flag(flag) {
        Reading::Known(false) => switch(context, setting, false, &format!("the flag {flag} is missing")),
        Reading::Known(true) if context.host.kernel.version.known().is_some_and(|v| *v >= drops_since) => {
            switch(context, setting, true, &format!("the flag {flag} is present"))
        }
        Reading::Known(true) => Judgement::unknown(format!(
            "kernels before {drops_since} show the flag {flag} even when the firmware disables it"
        )),
        other => missing(&other, PATH),
    }
    .at(PATH)
}

/// Judges memory encryption by its flag, which the kernel clears unless the firmware has enabled encryption.
pub(super) fn sme(context: &Context<'_>, setting: &Setting) -> Judgement {
    known(&context.host.cpu.has_flag("sme"), "/proc/cpuinfo", |is_on| {
        let by = if *is_on { "the flag sme is present" } else { "the flag sme is missing" };
        switch(context, setting, *is_on, by)
    })
}

pub(super) fn power_regulator(context: &Context<'_>, _: &Setting) -> Judgement {
    let policies = &context.host.cpu.frequency;
    let judgement = unseen(context, "check the BIOS setup or use Redfish");
    let Some(policy) = policies.first() else {
        return Judgement { observed: "the kernel does not control the frequency".into(), ..judgement };
    };
    let observed = format!("driver {}, governor {}", policy.driver, policy.governor);
    Judgement { observed, ..judgement }.at("/sys/devices/system/cpu/cpufreq")
}

pub(super) fn idle_states(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/cpu/cpu*/cpuidle";
    let cpu = &context.host.cpu;
    let Some(line) = command_line(context.host) else { return no_command_line(context.host) };
    if line.last("cpuidle.off") == Some("1") || line.last("idle").is_some() {
        return Judgement::unknown(
            "the command line controls the idle loop, which hides the firmware's setting",
        )
        .at(PATH);
    }
    if cpu.idle_driver.text() == "intel_idle" {
        return Judgement::unknown("intel_idle uses its own states, regardless of the firmware").at(PATH);
    }
    if cpu.idle_states.is_empty() && !cpu.idle_driver.is_known() {
        return missing(&cpu.idle_driver, "/sys/devices/system/cpu/cpuidle/current_driver");
    }
    let names: Vec<&str> = cpu.idle_states.iter().map(|state| state.name.as_str()).collect();
    let value = match () {
        () if names.iter().all(|name| is_polling(name)) => "No C-states",
        () if is_virtual(context) => return unseen(context, "").at(PATH),
        () if cpu.idle_states.iter().all(|state| is_shallow(context.host, state)) => "C1 State",
        () => "C6 State",
    };
    let by = if names.is_empty() { "no idle states".into() } else { format!("states {}", names.join(", ")) };
    seen(context, setting, value, &by).at(PATH)
}

pub(super) fn boost(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/cpu/cpufreq/boost";
    let cpu = &context.host.cpu;
    // AMD's and Intel's flag of a processor whose firmware allows boost.
    let flag = if cpu.is_amd() { "cpb" } else { "ida" };
    match (&cpu.boost, cpu.has_flag(flag)) {
        (Reading::Known(is_on), _) => switch(context, setting, *is_on, "as set in the kernel"),
        (Reading::Absent, Reading::Known(false)) => {
            switch(context, setting, false, &format!("the flag {flag} is missing from /proc/cpuinfo"))
        }
        (other, _) => missing(other, PATH),
    }
    .at(PATH)
}

pub(super) fn collaborative_power(context: &Context<'_>, setting: &Setting) -> Judgement {
    let is_pcc = |policy: &lowlat_host::snapshot::CpuFreq| policy.driver.text() == "pcc-cpufreq";
    if context.host.cpu.frequency.iter().any(is_pcc) {
        return switch(context, setting, true, "the frequency driver is pcc-cpufreq")
            .at("/sys/devices/system/cpu/cpufreq");
    }
    not_visible(context, setting)
}
