//! Procedures: the vendor's programs in order, each with what undoes it.

use super::Release;
use lowlat_host::{HostSnapshot, snapshot::Nic};
use serde::Serialize;
use std::net::IpAddr;
use thiserror::Error;

/// Firmware variant for the lowest latency.
pub const VARIANT: &str = "ultra-low-latency";

/// Programs that come with Onload and help to run it.
pub const HELPERS: [&str; 10] = [
    "onload",
    "onload_tool",
    "onload_stackdump",
    "onload_tcpdump",
    "onload_iptables",
    "onload_metrics",
    "sfcaffinity_config",
    "sfcirqaffinity",
    "sfboot",
    "zf_debug",
];

/// Demonstrations of ef_vi, with what each does.
pub const DEMOS: [(&str, &str); 12] = [
    ("eflatency", "measures half round trips of raw frames: run it on both hosts, as ping and as pong"),
    ("efsend", "sends frames"),
    ("efsend_pio", "sends frames through programmed I/O, without DMA"),
    ("efsend_pio_warm", "the same, and keeps the send path warm"),
    ("efsend_timestamping", "sends frames and prints when the card sent them"),
    ("efsink", "receives frames"),
    ("efsink_packed", "receives frames in packed-stream mode"),
    ("efforward", "forwards frames between two ports"),
    ("efforward_packed", "forwards frames in packed-stream mode"),
    ("efrss", "receives frames in several threads"),
    ("efjumborx", "receives jumbo frames"),
    ("stats", "prints per-queue statistics"),
];

/// Program to run as one step of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Step {
    /// Purpose: "build the driver and the libraries".
    pub what: String,
    /// The program, followed by its arguments.
    pub command: Vec<String>,
    /// Folder in which it runs; empty: the current one.
    pub folder: String,
    /// Variables added to its environment: name, value.
    pub environment: Vec<(String, String)>,
    /// Command or advice that undoes it; empty if there is nothing to undo.
    pub undo: String,
}

/// Steps in order, with notes for the user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Procedure {
    /// Heading, such as "Remove Onload".
    pub title: String,
    pub steps: Vec<Step>,
    /// True if a reboot is needed to complete it.
    pub needs_reboot: bool,
    /// Notes to read before the start, one sentence each.
    pub notes: Vec<String>,
}

/// Reason not to start a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The card carries the session of the user.
    #[error(
        "cannot remove the driver: your ssh session runs over {interface}, which would lose its link\nhint: log in over \
         another interface, or use --force on the console"
    )]
    SessionOverCard {
        /// The interface of the session.
        interface: String,
    },
}

fn step(what: &str, command: &[&str], undo: &str) -> Step {
    Step {
        what: what.to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        undo: undo.to_owned(),
        ..Step::default()
    }
}

/// Returns how to install a release: `archive` is its path, `into` the folder to unpack it in, `startup_folder` the
/// folder of crti.o if the compiler does not find it there by itself.
pub fn install(release: &Release, archive: &str, into: &str, startup_folder: Option<&str>) -> Procedure {
    let folder = format!("{into}/{}", release.name);
    let unpack: &[&str] = if release.ending == ".zip" {
        &["unzip", "-q", "-o", archive, "-d", into]
    } else {
        &["tar", "-xzf", archive, "-C", into]
    };
    let scripts = format!("{folder}/scripts");
    let environment = startup_folder.map(|folder| ("LIBRARY_PATH".to_owned(), folder.to_owned()));
    let build = Step {
        folder: scripts.clone(),
        environment: environment.into_iter().collect(),
        ..step("build the driver and the libraries", &["./onload_build"], "")
    };
    let put =
        Step { folder: scripts, ..step("install them", &["./onload_install"], "lowlat onload uninstall") };
    Procedure {
        title: format!("Install Onload {}", release.version),
        steps: vec![
            step("unpack the archive", unpack, &format!("rm -r {folder}")),
            build,
            put,
            step(
                "load the driver, which interrupts the links of the card",
                &["onload_tool", "reload"],
                "onload_tool unload",
            ),
        ],
        needs_reboot: false,
        notes: vec!["The build needs gcc, make and the headers of the running kernel.".to_owned()],
    }
}

/// Returns how to update the firmware of a card and choose its variant; `present` is the current one, if known.
pub fn firmware(interface: &str, has_update: bool, variant: &str, present: Option<&str>) -> Procedure {
    let adapter = format!("--adapter={interface}");
    let mut steps = Vec::new();
    if has_update {
        steps.push(step(
            "write the newest firmware of the installed package",
            &["sfupdate", &adapter, "--write", "--yes"],
            "",
        ));
    }
    let undo =
        present.map(|present| format!("sfboot {adapter} firmware-variant={present}")).unwrap_or_default();
    steps.push(step(
        "choose the variant",
        &["sfboot", &adapter, &format!("firmware-variant={variant}")],
        &undo,
    ));
    Procedure {
        title: format!("Set the firmware of {interface} to {variant}"),
        steps,
        needs_reboot: true,
        notes: vec![
            "Do not switch the host off while the firmware is written.".to_owned(),
            "Afterwards `lowlat onload status` shows the variant; the version string of ethtool does not prove it.".to_owned(),
        ],
    }
}

/// Returns how to remove Onload. `packages` are the installed packages of the driver, `manager` the program that
/// removes them, with its arguments.
///
/// # Errors
/// [`Refusal`] if the user's session runs over the card, unless forced.
pub fn uninstall(
    packages: &[String],
    manager: &[&str],
    session: Option<String>,
    is_forced: bool,
) -> Result<Procedure, Refusal> {
    if let Some(interface) = session.filter(|_| !is_forced) {
        return Err(Refusal::SessionOverCard { interface });
    }
    let mut steps = vec![
        step("unload Onload", &["onload_tool", "unload"], "onload_tool reload"),
        step(
            "unload the driver, which ends the links of the card",
            &["modprobe", "-r", "sfc"],
            "modprobe sfc",
        ),
    ];
    if !packages.is_empty() {
        let names: Vec<&str> = manager.iter().copied().chain(packages.iter().map(String::as_str)).collect();
        steps.push(step(
            "remove the driver's packages",
            &names,
            "install them again from the vendor's archive",
        ));
    }
    steps.push(step(
        "remove the programs and libraries",
        &["onload_uninstall"],
        "lowlat onload install ARCHIVE",
    ));
    Ok(Procedure {
        title: "Remove Onload".to_owned(),
        steps,
        needs_reboot: false,
        notes: vec![
            "The kernel's own driver for the card is used after `modprobe sfc` or a reboot.".to_owned(),
        ],
    })
}

/// Returns the folder of the ef_vi demonstrations below an unpacked release.
pub fn demos_folder(release: &str) -> String {
    format!("{release}/build/gnu_x86_64/tests/ef_vi")
}

/// Returns how to build the demonstrations of an unpacked and built release; `path` is the current PATH.
pub fn build_demos(release: &str, path: &str) -> Procedure {
    let make = |what: &str, target: &[&str]| Step {
        folder: demos_folder(release),
        environment: vec![("PATH".to_owned(), format!("{release}/scripts:{path}"))],
        ..step(what, target, "")
    };
    Procedure {
        title: "Build the ef_vi demonstrations".to_owned(),
        steps: vec![make("remove earlier builds", &["make", "clean"]), make("build", &["make"])],
        needs_reboot: false,
        notes: Vec::new(),
    }
}

/// Returns the interface of a Solarflare card that carries the ssh session: `connection` is SSH_CONNECTION, "client
/// port server port".
pub fn session_over(host: &HostSnapshot, connection: &str) -> Option<String> {
    let server: IpAddr = connection.split_ascii_whitespace().nth(2)?.parse().ok()?;
    let has_address = |nic: &&Nic| {
        let addresses = nic.addresses.known().map(Vec::as_slice).unwrap_or_default();
        let mut plain =
            addresses.iter().filter_map(|address| address.split('/').next()?.parse::<IpAddr>().ok());
        plain.any(|address| address == server.to_canonical() || address == server)
    };
    let nic = host.nics.iter().find(has_address)?;
    nic.driver.text().starts_with("sfc").then(|| nic.name.clone())
}

/// Returns the variant in the output of `sfboot --adapter=IF`, in the spelling that sfboot accepts:
/// "ultra-low-latency".
pub fn firmware_variant(output: &str) -> Option<String> {
    let value = output.lines().find_map(|line| line.trim().strip_prefix("Firmware variant"))?;
    let value = value.trim_start_matches([':', ' ', '\t']).trim();
    (!value.is_empty()).then(|| value.to_ascii_lowercase().replace([' ', '_'], "-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::Reading;

    fn commands(procedure: &Procedure) -> Vec<String> {
        procedure.steps.iter().map(|step| step.command.join(" ")).collect()
    }

    #[test]
    fn the_articles_installation() {
        let release = Release::parse("openonload-201811.tgz").unwrap();
        let procedure = install(&release, "/tmp/openonload-201811.tgz", "/opt", Some("/usr/lib64"));
        assert_eq!(
            commands(&procedure),
            [
                "tar -xzf /tmp/openonload-201811.tgz -C /opt",
                "./onload_build",
                "./onload_install",
                "onload_tool reload"
            ]
        );
        assert_eq!(procedure.steps[1].folder, "/opt/openonload-201811/scripts");
        assert_eq!(procedure.steps[1].environment, [("LIBRARY_PATH".to_owned(), "/usr/lib64".to_owned())]);
        assert!(procedure.steps[2].environment.is_empty());
    }

    #[test]
    fn firmware_can_be_set_back_if_the_variant_is_known() {
        let procedure = firmware("enp1s0f1", true, VARIANT, Some("full-feature"));
        assert_eq!(
            commands(&procedure),
            [
                "sfupdate --adapter=enp1s0f1 --write --yes",
                "sfboot --adapter=enp1s0f1 firmware-variant=ultra-low-latency"
            ]
        );
        assert_eq!(procedure.steps[1].undo, "sfboot --adapter=enp1s0f1 firmware-variant=full-feature");
        assert!(procedure.needs_reboot);
        assert_eq!(firmware("enp1s0f1", false, VARIANT, None).steps.len(), 1);
    }

    #[test]
    fn packages_are_removed_by_name() {
        let packages = ["kernel-module-sfc-RHEL7".to_owned(), "sfutils".to_owned()];
        let procedure = uninstall(&packages, &["rpm", "-e"], None, false).unwrap();
        assert_eq!(
            commands(&procedure),
            [
                "onload_tool unload",
                "modprobe -r sfc",
                "rpm -e kernel-module-sfc-RHEL7 sfutils",
                "onload_uninstall"
            ]
        );
        assert_eq!(uninstall(&[], &["rpm", "-e"], None, false).unwrap().steps.len(), 3);
    }

    #[test]
    fn a_session_over_the_card_stops_the_removal_unless_forced() {
        let nic = |name: &str, driver: &str, address: &str| Nic {
            name: name.into(),
            driver: Reading::Known(driver.into()),
            addresses: Reading::Known(vec![address.into()]),
            ..Nic::default()
        };
        let host = HostSnapshot {
            nics: vec![nic("eno1", "igb", "192.168.1.115/24"), nic("enp1s0f1", "sfc", "192.168.1.112/24")],
            ..HostSnapshot::default()
        };
        let over = |server: &str| session_over(&host, &format!("192.168.1.9 50000 {server} 22"));
        assert_eq!(over("192.168.1.112").as_deref(), Some("enp1s0f1"));
        assert_eq!(over("::ffff:192.168.1.112").as_deref(), Some("enp1s0f1"));
        assert_eq!((over("192.168.1.115"), session_over(&host, ""), over("x")), (None, None, None));
        let refused = uninstall(&[], &["rpm", "-e"], over("192.168.1.112"), false);
        assert_eq!(refused, Err(Refusal::SessionOverCard { interface: "enp1s0f1".into() }));
        assert!(uninstall(&[], &["rpm", "-e"], over("192.168.1.112"), true).is_ok());
    }

    #[test]
    fn the_variant_is_in_sfboots_output() {
        let output = "Solarflare boot configuration utility [v8.2.2]\n\nenp1s0f1:\n  Boot image                            Option ROM only\n  Firmware variant                      Ultra low latency\n";
        assert_eq!(firmware_variant(output).as_deref(), Some(VARIANT));
        assert_eq!(firmware_variant("enp1s0f1:\n  Boot image  Disabled\n"), None);
    }
}
