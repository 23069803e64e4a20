//! Idle states that are no deeper than C1.

use lowlat_host::{HostSnapshot, snapshot::IdleState};

/// Names and descriptions of the first CPU's states. A description identifies a state better than its name alone.
pub const IDLE_DESCRIPTIONS: &[&str] =
    &["/sys/devices/system/cpu/cpu0/cpuidle/state*/name", "/sys/devices/system/cpu/cpu0/cpuidle/state*/desc"];

/// True if a state is no deeper than C1: polling, the architecture's halt, C1, or ARM's wait for interrupt.
pub fn is_shallow(host: &HostSnapshot, state: &IdleState) -> bool {
    is_no_deeper_than_c1(&state.name, description(host, &state.name), state.exit_latency_us.known().copied())
}

/// True if the CPU spins in the state.
pub fn is_polling(name: &str) -> bool {
    matches!(name, "POLL" | "C0")
}

/// The description of the first CPU's state of this name.
fn description<'a>(host: &'a HostSnapshot, name: &str) -> Option<&'a str> {
    let (path, _) = host
        .files_matching(IDLE_DESCRIPTIONS[0])
        .find(|(_, reading)| reading.known().is_some_and(|known| known.trim() == name))?;
    let folder = path.strip_suffix("/name")?;
    let reading = host.files.get(&format!("{folder}/desc"))?;
    reading.known().map(|text| text.trim())
}

/// Names differ between drivers and kernels: intel_idle has used C1, C1-SNB and SNB-C1, and NHM-C1 before Linux 3.
fn is_no_deeper_than_c1(name: &str, description: Option<&str>, exit_latency_us: Option<u64>) -> bool {
    let parts = || name.split(['-', '_', ' ']);
    if is_polling(name) || parts().any(|part| matches!(part, "C1" | "WFI" | "haltpoll")) {
        return true;
    }
    // C1E, C2, C6S, C1E-ATM: the name is that of a deeper state.
    if parts().any(is_c_state) {
        return false;
    }
    let by_description = description.is_some_and(|text| {
        let hint = text.rsplit_once("MWAIT 0x").and_then(|(_, hint)| u32::from_str_radix(hint, 16).ok());
        hint == Some(0)
            || text.ends_with("POLL IDLE")
            || text == "ACPI HLT"
            || text == "default architecture idle"
            || text.split_whitespace().any(|word| word == "WFI")
    });
    by_description || exit_latency_us == Some(0)
}

/// True if a part of a name is a C-state: "C6", "C1E", "C10".
fn is_c_state(part: &str) -> bool {
    part.strip_prefix('C').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::Reading;

    #[test]
    fn states_of_many_drivers_are_sorted() {
        for (name, description, latency_us) in [
            // acpi_idle and intel_idle today.
            ("POLL", "CPUIDLE CORE POLL IDLE", Some(0)),
            ("C1", "MWAIT 0x00", Some(2)),
            ("C1", "ACPI FFH MWAIT 0x0", Some(1)),
            ("C1_ACPI", "ACPI FFH MWAIT 0x0", Some(1)),
            ("C1", "ACPI HLT", None),
            // intel_idle of old kernels.
            ("C0", "CPUIDLE CORE POLL IDLE", Some(0)),
            ("NHM-C1", "MWAIT 0x00", Some(3)),
            ("SNB-C1", "MWAIT 0x00", Some(1)),
            ("ATM-C1", "MWAIT 0x00", Some(1)),
            ("C1-NHM", "MWAIT 0x00", Some(3)),
            ("C1-SNB", "MWAIT 0x00", Some(2)),
            ("C1-HSW", "MWAIT 0x00", Some(2)),
            // Other drivers.
            ("haltpoll", "default architecture idle", Some(1)),
            ("idle", "default architecture idle", Some(1)),
            ("WFI", "ARM WFI", Some(1)),
            ("LPI-0", "WFI", Some(1)),
            ("snooze", "snooze", Some(0)),
            ("light", "MWAIT 0x00", Some(2)),
        ] {
            assert!(is_no_deeper_than_c1(name, Some(description), latency_us), "{name}: {description}");
        }
        for (name, description, latency_us) in [
            ("C1E", "MWAIT 0x01", Some(10)),
            ("C1E-NHM", "MWAIT 0x01", Some(10)),
            ("C1E-ATM", "MWAIT 0x00", Some(10)),
            ("C2", "ACPI IOPORT 0x814", Some(400)),
            ("C2", "ACPI IOPORT 0x814", Some(0)),
            ("C2_ACPI", "ACPI FFH MWAIT 0x20", Some(100)),
            ("NHM-C3", "MWAIT 0x10", Some(20)),
            ("NHM-C6", "MWAIT 0x20", Some(200)),
            ("C6-SKX", "MWAIT 0x20", Some(133)),
            ("C10", "MWAIT 0x60", Some(890)),
            ("cpu-sleep-0", "cpu-sleep-0", Some(150)),
            ("LPI-1", "Powerdown", Some(300)),
            ("deep", "MWAIT 0x01", Some(10)),
            ("", "", None),
        ] {
            assert!(!is_no_deeper_than_c1(name, Some(description), latency_us), "{name}: {description}");
        }
        assert!(!is_no_deeper_than_c1("LPI-0", None, None));
    }

    #[test]
    fn a_description_is_found_by_the_name_of_its_state() {
        let mut host = HostSnapshot::default();
        for (at, name, desc) in [(0, "LPI-0\n", "WFI\n"), (1, "LPI-1\n", "Powerdown\n")] {
            for (file, text) in [("name", name), ("desc", desc)] {
                let path = format!("/sys/devices/system/cpu/cpu0/cpuidle/state{at}/{file}");
                host.files.insert(path, Reading::Known(text.into()));
            }
        }
        let state = |name: &str| IdleState { name: name.into(), ..IdleState::default() };
        assert!(is_shallow(&host, &state("LPI-0")));
        assert!(!is_shallow(&host, &state("LPI-1")));
        assert!(!is_shallow(&host, &state("LPI-2")));
    }
}
