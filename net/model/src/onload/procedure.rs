//! Procedures: the vendor's programs in order, each with what undoes it.

use super::{OnloadRemains, Release, USER};
use lowlat_host::{HostSnapshot, Reading, snapshot::Nic};
use serde::Serialize;
use std::net::IpAddr;
use thiserror::Error;

/// Firmware variant for the lowest latency.
pub const VARIANT: &str = "ultra-low-latency";

/// Programs of Onload and of its cards in releases so far: no release has all of them.
pub const HELPERS: [&str; 14] = [
    "onload",
    "onload_tool",
    "onload_stackdump",
    "onload_fuser",
    "onload_tcpdump",
    "onload_iptables",
    "onload_mibdump",
    "orm_json",
    "sfcaffinity_config",
    "sfcirqaffinity",
    "sfboot",
    "sfupdate",
    "amdsfboot",
    "zf_debug",
];

/// Demonstrations of ef_vi in releases so far, with what each does.
const DEMOS: [(&str, &str); 14] = [
    ("efforward", "forwards frames between two ports"),
    ("efforward_packed", "forwards frames in packed-stream mode"),
    ("efjumborx", "receives jumbo frames"),
    ("eflatency", "measures half round trips of raw frames: run it on both hosts, as ping and as pong"),
    ("efpingpong", "the same, in older releases"),
    ("efrss", "receives frames in several threads"),
    ("efsend", "sends frames"),
    ("efsend_cplane", "sends frames by the routes of Onload's control plane"),
    ("efsend_pio", "sends frames through programmed I/O, without DMA"),
    ("efsend_pio_warm", "the same, and keeps the send path warm"),
    ("efsend_timestamping", "sends frames and prints when the card sent them"),
    ("efsend_warming", "sends frames when a trigger fires, and keeps the send path warm in between"),
    ("efsink", "receives frames"),
    ("efsink_packed", "receives frames in packed-stream mode"),
];

/// Returns the demonstrations of a release, by its makefile, each with what it does if that is known.
pub fn demos(makefile: &str) -> Vec<(&str, &'static str)> {
    let is_name = |word: &&str| {
        word.starts_with("ef") && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    let mut names: Vec<&str> = Vec::new();
    let mut is_list = false;
    for line in makefile.lines() {
        let (target, words) = line.split_once('=').unwrap_or(("", line));
        is_list = is_list || target.contains("_APPS");
        if is_list {
            names.extend(words.split_ascii_whitespace().filter(is_name));
        }
        is_list = is_list && line.ends_with('\\');
    }
    names.sort_unstable();
    names.dedup();
    let what = |name: &str| DEMOS.iter().find(|(known, _)| *known == name).map_or("", |(_, what)| what);
    names.into_iter().map(|name| (name, what(name))).collect()
}

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
    /// True if the next step follows even if it fails.
    pub may_fail: bool,
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
    /// - `doing`: such as "unload the driver".
    /// - `interface`: the interface of the card.
    #[error(
        "cannot {doing}: your ssh session runs over {interface}, which would lose its link\nhint: log in over another \
         interface, or use --force on the console"
    )]
    SessionOverCard { doing: &'static str, interface: String },
    /// Onload cannot be unloaded while programs use it.
    #[error("cannot unload Onload: {0} run on it\nhint: end them first")]
    InUse(String),
}

pub(super) fn step(what: &str, command: &[&str], undo: &str) -> Step {
    Step {
        what: what.to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        undo: undo.to_owned(),
        ..Step::default()
    }
}

/// Returns how to install a release: `archive` is its path, `into` the folder to unpack it in, `startup_folder` the
/// folder of crti.o if the compiler does not find it there by itself. A bundle contains the archive by the name
/// `inside`.
pub fn install(
    release: &Release,
    archive: &str,
    inside: Option<&str>,
    into: &str,
    startup_folder: Option<&str>,
) -> Procedure {
    let folder = format!("{into}/{}", release.name);
    let mut steps = Vec::new();
    let unpacked = inside.map(|inside| format!("{into}/{}", inside.rsplit('/').next().unwrap_or(inside)));
    if let (Some(inside), Some(unpacked)) = (inside, &unpacked) {
        steps.push(step(
            "take the archive out of the bundle",
            &["unzip", "-q", "-o", "-j", archive, inside, "-d", into],
            &format!("rm {unpacked}"),
        ));
    }
    let archive = unpacked.as_deref().unwrap_or(archive);
    let unpack: &[&str] = if release.ending == ".zip" {
        &["unzip", "-q", "-o", archive, "-d", into]
    } else {
        &["tar", "-xzf", archive, "-C", into]
    };
    let scripts = format!("{folder}/scripts");
    let environment = startup_folder.map(|folder| ("LIBRARY_PATH".to_owned(), folder.to_owned()));
    steps.push(step("unpack the archive", unpack, &format!("rm -r {folder}")));
    steps.push(Step {
        folder: scripts.clone(),
        environment: environment.into_iter().collect(),
        ..step("build the driver and the libraries", &["./onload_build"], "")
    });
    steps.push(Step {
        folder: scripts,
        ..step("install them", &["./onload_install", "--nobuild"], "lowlat onload uninstall")
    });
    steps.push(reload());
    Procedure {
        title: format!("Install Onload {}", release.version),
        steps,
        needs_reboot: false,
        notes: vec!["The build needs gcc, make and the headers of the running kernel.".to_owned()],
    }
}

/// Returns how to install packages of a release, such as onload-user_9.2.1_amd64.deb, by their paths. `None` if a file is no
/// package of Onload, or they are of two formats.
pub fn install_packages(files: &[String]) -> Option<Procedure> {
    /// Starts of the names that Onload's own makers of packages give them.
    const NAMES: [&str; 6] =
        ["onload", "openonload", "enterpriseonload", "cloudonload", "sfutils", "kernel-module-sfc"];
    const MANAGERS: [(&str, [&str; 3]); 2] =
        [(".deb", ["apt-get", "install", "-y"]), (".rpm", ["dnf", "install", "-y"])];
    let is_onloads = |file: &String| {
        let name = file.rsplit('/').next().unwrap_or_default();
        NAMES.iter().any(|start| name.starts_with(start))
    };
    let all_end = |ending: &str| files.iter().all(|file| file.ends_with(ending) && is_onloads(file));
    let (_, manager) = MANAGERS.iter().find(|(ending, _)| !files.is_empty() && all_end(ending))?;
    let words: Vec<&str> = manager.iter().copied().chain(files.iter().map(String::as_str)).collect();
    Some(Procedure {
        title: "Install Onload's packages".to_owned(),
        steps: vec![
            step("install the packages, which may build the driver", &words, "lowlat onload uninstall"),
            reload(),
        ],
        needs_reboot: false,
        notes: Vec::new(),
    })
}

fn reload() -> Step {
    step(
        "load the driver, which interrupts the links of the card",
        &["onload_tool", "reload"],
        "onload_tool unload",
    )
}

/// Returns how to update the firmware of a card and choose its variant; `present` is the current one, if known. An X4
/// has a program of its own, and takes its variant when the power comes back.
pub fn firmware(
    interface: &str,
    is_x4: bool,
    has_update: bool,
    variant: &str,
    present: Option<&str>,
) -> Procedure {
    let program = boot_program(is_x4);
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
        present.map(|present| format!("{program} {adapter} firmware-variant={present}")).unwrap_or_default();
    steps.push(step(
        "choose the variant",
        &[program, &adapter, &format!("firmware-variant={variant}")],
        &undo,
    ));
    Procedure {
        title: format!("Set the firmware of {interface} to {variant}"),
        steps,
        needs_reboot: true,
        notes: vec![
            if is_x4 {
                "The card takes the variant after a power cycle: a reboot is not enough.".to_owned()
            } else {
                "Do not switch the host off while the firmware is written.".to_owned()
            },
            "Afterwards `lowlat onload status` shows the variant.".to_owned(),
        ],
    }
}

/// Returns the program that sets a card's firmware variant.
pub fn boot_program(is_x4: bool) -> &'static str {
    if is_x4 { "amdsfboot" } else { "sfboot" }
}

/// What is installed of Onload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Installed {
    /// Packages of Onload and its driver.
    pub packages: Vec<String>,
    /// Program that removes packages, with its arguments.
    pub manager: &'static [&'static str],
    /// True if `onload_tool` is there, which unloads the modules.
    pub has_tool: bool,
    /// True if `onload_tool unload` can leave the driver of the card alone.
    pub has_onload_only: bool,
    /// True if `onload_uninstall` is there, which removes what was built from an archive.
    pub has_uninstall: bool,
    /// Modules of the card's driver that are loaded and Onload's own, not the kernel's.
    pub drivers: Vec<&'static str>,
    /// Interfaces of these drivers.
    pub interfaces: Vec<String>,
    /// Command that writes the initramfs anew, which may contain Onload's driver.
    pub initramfs: &'static [&'static str],
    /// Programs that run on Onload: "md (1234)".
    pub users: Vec<String>,
    /// What an installation made besides, by its log; absent without one.
    pub remains: Reading<OnloadRemains>,
}

impl Installed {
    /// True if there is nothing to remove.
    pub fn is_nothing(&self) -> bool {
        let remains = self.remains.known();
        self.packages.is_empty()
            && !self.has_tool
            && !self.has_uninstall
            && remains.is_none_or(|remains| *remains == OnloadRemains::default())
    }
}

/// Returns how to remove Onload.
///
/// # Errors
/// [`Refusal`] if programs run on it.
pub fn uninstall(installed: &Installed) -> Result<Procedure, Refusal> {
    if !installed.users.is_empty() {
        return Err(Refusal::InUse(installed.users.join(", ")));
    }
    let Installed { drivers, interfaces, .. } = installed;
    let cut = if interfaces.is_empty() {
        String::new()
    } else {
        format!(", which ends the links of {}", interfaces.join(", "))
    };
    let mut steps = Vec::new();
    match (installed.has_tool, installed.has_onload_only) {
        (true, true) => steps.push(step(
            "unload Onload",
            &["onload_tool", "unload", "--onload-only"],
            "onload_tool reload --onload-only",
        )),
        (true, false) => steps.push(step(
            &format!("unload Onload and the driver{cut}"),
            &["onload_tool", "unload"],
            "onload_tool reload",
        )),
        (false, _) => {}
    }
    for driver in drivers {
        steps.push(step(
            &format!("unload the driver {driver}{cut}"),
            &["modprobe", "-r", driver],
            &format!("modprobe {driver}"),
        ));
    }
    if !installed.packages.is_empty() {
        let packages = installed.packages.iter().map(String::as_str);
        let words: Vec<&str> = installed.manager.iter().copied().chain(packages).collect();
        steps.push(step("remove the packages", &words, "install them again"));
    }
    if installed.has_uninstall {
        steps.push(step(
            "remove the programs, libraries and modules",
            &["onload_uninstall"],
            "lowlat onload install ARCHIVE",
        ));
    }
    if !installed.initramfs.is_empty() {
        steps.push(step("write the initramfs with the kernel's own driver", installed.initramfs, ""));
    }
    // Without a card, Onload's tools alone had loaded it.
    if !interfaces.is_empty() {
        steps.extend(
            drivers.iter().map(|driver| step("load the kernel's own driver", &["modprobe", driver], "")),
        );
    }
    let notes = match installed.remains.missing_in_words() {
        None => Vec::new(),
        Some(why) => {
            vec![format!(
                "An unpacked release, the user {USER} and empty folders stay: no log names them ({why})."
            )]
        }
    };
    steps.extend(installed.remains.known().into_iter().flat_map(OnloadRemains::removal));
    Ok(Procedure { title: "Remove Onload".to_owned(), steps, needs_reboot: false, notes })
}

/// Returns the folder of the ef_vi demonstrations below an unpacked release.
pub fn demos_folder(release: &str) -> String {
    format!("{release}/build/gnu_x86_64/tests/ef_vi")
}

/// Returns the makefile that names the demonstrations of an unpacked release.
pub fn demos_makefile(release: &str) -> String {
    format!("{release}/src/tests/ef_vi/mmake.mk")
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

/// Returns whether a driver is one of Solarflare's cards: sfc and its variants, and `xilinx_efct` of the X3522.
pub fn is_card_driver(driver: &str) -> bool {
    driver == "sfc" || driver.starts_with("sfc_") || driver == "xilinx_efct"
}

/// Returns whether an interface is that of an X4 card, by its PCI device (PCI IDs 1924:0c03 to 1924:2c03).
pub fn is_x4(nic: &Nic) -> bool {
    matches!(nic.pci_id.text().to_ascii_lowercase().as_str(), "1924:0c03" | "1924:1c03" | "1924:2c03")
}

/// Refuses what would end the ssh session of the user: `connection` is SSH_CONNECTION, "client port server port".
///
/// # Errors
/// [`Refusal`] if the session runs over a card, also by way of a bond, bridge or VLAN, unless forced.
pub fn check_session(
    doing: &'static str,
    host: &HostSnapshot,
    connection: &str,
    is_forced: bool,
) -> Result<(), Refusal> {
    let session = session_over(host, connection).filter(|_| !is_forced);
    session.map_or(Ok(()), |interface| Err(Refusal::SessionOverCard { doing, interface }))
}

fn session_over(host: &HostSnapshot, connection: &str) -> Option<String> {
    let server = connection.split_ascii_whitespace().nth(2)?;
    // A link-local address has its interface: "fe80::1%ens1".
    let server: IpAddr = server.split('%').next()?.parse().ok()?;
    let has_address = |nic: &&Nic| nic.ips().any(|ip| ip == server.to_canonical() || ip == server);
    let own: Vec<String> = host.nics.iter().filter(has_address).map(|nic| nic.name.clone()).collect();
    let carriers = host.carriers_of(&own);
    let is_card = |nic: &&Nic| carriers.contains(&nic.name) && is_card_driver(nic.driver.text());
    host.nics.iter().find(is_card).map(|nic| nic.name.clone())
}

/// Firmware variants in the spelling that sfboot accepts (SF-103837, "sfboot: Command Line Options"). The first three in
/// the order of the card's numbers.
const VARIANTS: [&str; 6] =
    ["full-feature", VARIANT, "capture-packed-stream", "rules-engine", "dpdk", "auto"];

/// Returns the variant in the output of `sfboot --adapter=IF`.
pub fn firmware_variant(output: &str) -> Option<&'static str> {
    let value = output.lines().find_map(|line| line.trim().strip_prefix("Firmware variant"))?;
    let value = value.trim_start_matches([':', ' ', '\t']).to_ascii_lowercase().replace([' ', '_'], "-");
    VARIANTS.into_iter().find(|variant| value.starts_with(variant))
}

/// Returns the variant that a card runs, by the version of its firmware as ethtool prints it: "8.2.2.1005 rx1 tx1". The
/// driver numbers its receive paths as the card does: 0 full feature, 1 low latency, 2 packed stream.
pub fn running_variant(firmware: &str) -> Option<&'static str> {
    let number: Option<usize> =
        firmware.split_ascii_whitespace().find_map(|word| word.strip_prefix("rx")?.parse().ok());
    VARIANTS[..3].get(number?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(procedure: &Procedure) -> Vec<String> {
        procedure.steps.iter().map(|step| step.command.join(" ")).collect()
    }

    #[test]
    fn the_articles_installation() {
        let release = Release::parse("openonload-201811.tgz").unwrap();
        let procedure = install(&release, "/tmp/openonload-201811.tgz", None, "/opt", Some("/usr/lib64"));
        assert_eq!(
            commands(&procedure),
            [
                "tar -xzf /tmp/openonload-201811.tgz -C /opt",
                "./onload_build",
                "./onload_install --nobuild",
                "onload_tool reload"
            ]
        );
        assert_eq!(procedure.steps[1].folder, "/opt/openonload-201811/scripts");
        assert_eq!(procedure.steps[1].environment, [("LIBRARY_PATH".to_owned(), "/usr/lib64".to_owned())]);
        assert!(procedure.steps[2].environment.is_empty());
    }

    #[test]
    fn packages_of_one_format_are_installed() {
        let files = |names: &str| names.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let procedure =
            install_packages(&files("/d/onload-user_9.2.1_amd64.deb /d/onload-dkms_9.2.1_all.deb"));
        assert_eq!(
            commands(&procedure.unwrap()),
            [
                "apt-get install -y /d/onload-user_9.2.1_amd64.deb /d/onload-dkms_9.2.1_all.deb",
                "onload_tool reload"
            ]
        );
        let procedure = install_packages(&files("onload-9.2.1-1.el9.x86_64.rpm")).unwrap();
        assert_eq!(commands(&procedure)[0], "dnf install -y onload-9.2.1-1.el9.x86_64.rpm");
        for other in
            ["onload-9.2.1.tgz", "onload_9.deb onload-9.rpm", "libsfcgal1_1.4.deb", "onload.deb x.deb", ""]
        {
            assert_eq!(install_packages(&files(other)), None, "{other}");
        }
        assert_eq!(install_packages(&[]), None);
    }

    #[test]
    fn a_bundle_is_opened_first() {
        let release = Release::parse("onload-9.0.2.tgz").unwrap();
        let procedure = install(&release, "/tmp/SF-109585.zip", Some("b/onload-9.0.2.tgz"), "/opt", None);
        assert_eq!(
            commands(&procedure)[..2],
            [
                "unzip -q -o -j /tmp/SF-109585.zip b/onload-9.0.2.tgz -d /opt",
                "tar -xzf /opt/onload-9.0.2.tgz -C /opt"
            ]
        );
    }

    #[test]
    fn firmware_can_be_set_back_if_the_variant_is_known() {
        let procedure = firmware("enp1s0f1", false, true, VARIANT, Some("full-feature"));
        assert_eq!(
            commands(&procedure),
            [
                "sfupdate --adapter=enp1s0f1 --write --yes",
                "sfboot --adapter=enp1s0f1 firmware-variant=ultra-low-latency"
            ]
        );
        assert_eq!(procedure.steps[1].undo, "sfboot --adapter=enp1s0f1 firmware-variant=full-feature");
        assert!(procedure.needs_reboot);
        let x4 = firmware("enp1s0f1", true, false, VARIANT, None);
        assert_eq!(commands(&x4), ["amdsfboot --adapter=enp1s0f1 firmware-variant=ultra-low-latency"]);
        assert!(x4.notes[0].contains("power cycle"), "{:?}", x4.notes);
    }

    #[test]
    fn a_removal_names_what_is_there_and_the_links_that_it_cuts() {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut installed = Installed {
            packages: text(&["kernel-module-sfc-RHEL7", "sfutils"]),
            manager: &["rpm", "-e"],
            has_tool: true,
            has_onload_only: true,
            has_uninstall: true,
            drivers: vec!["sfc"],
            interfaces: text(&["ens1f0", "ens1f1"]),
            initramfs: &["dracut", "--force"],
            users: Vec::new(),
            remains: Reading::Known(OnloadRemains::default()),
        };
        let procedure = uninstall(&installed).unwrap();
        assert_eq!(
            commands(&procedure),
            [
                "onload_tool unload --onload-only",
                "modprobe -r sfc",
                "rpm -e kernel-module-sfc-RHEL7 sfutils",
                "onload_uninstall",
                "dracut --force",
                "modprobe sfc"
            ]
        );
        let cutting: Vec<&str> = procedure.steps.iter().map(|step| step.what.as_str()).collect();
        assert_eq!(cutting[1], "unload the driver sfc, which ends the links of ens1f0, ens1f1");
        assert_eq!(cutting.iter().filter(|what| what.contains("links")).count(), 1, "{cutting:?}");
        installed.has_onload_only = false;
        assert!(uninstall(&installed).unwrap().steps[0].what.contains("ends the links of ens1f0"));
        assert_eq!(procedure.notes, [""; 0]);
        installed.users = text(&["md (1234)"]);
        assert_eq!(uninstall(&installed), Err(Refusal::InUse("md (1234)".to_owned())));
        assert!(Installed::default().is_nothing() && !installed.is_nothing());
        assert_eq!(uninstall(&Installed::default()).unwrap().steps, []);
    }

    #[test]
    fn a_session_over_the_card_stops_what_cuts_it_unless_forced() {
        let nic = |name: &str, driver: &str, address: &str, lower: &[&str]| Nic {
            name: name.into(),
            driver: Reading::Known(driver.into()),
            addresses: Reading::Known(vec![address.into()]),
            lower: lower.iter().map(|name| (*name).to_owned()).collect(),
            ..Nic::default()
        };
        let host = HostSnapshot {
            nics: vec![
                nic("eno1", "igb", "192.168.1.115/24", &[]),
                nic("enp1s0f1", "sfc", "192.168.1.112/24", &[]),
                nic("bond0.7", "802.1Q VLAN Support", "10.7.0.1/24", &["bond0"]),
                nic("bond0", "bonding", "10.0.0.1/24", &["eno1", "ens3"]),
                nic("ens3", "xilinx_efct", "fe80::1/64", &[]),
            ],
            ..HostSnapshot::default()
        };
        let over = |server: &str| session_over(&host, &format!("192.168.1.9 50000 {server} 22"));
        assert_eq!(over("192.168.1.112").as_deref(), Some("enp1s0f1"));
        assert_eq!(over("::ffff:192.168.1.112").as_deref(), Some("enp1s0f1"));
        assert_eq!((over("10.7.0.1"), over("fe80::1%ens3")), (Some("ens3".into()), Some("ens3".into())));
        assert_eq!((over("192.168.1.115"), session_over(&host, ""), over("x")), (None, None, None));
        let check = |is_forced| check_session("unload the driver", &host, "1.2.3.4 5 10.0.0.1 22", is_forced);
        let refused = check(false).unwrap_err().to_string();
        assert!(
            refused.starts_with("cannot unload the driver: your ssh session runs over ens3"),
            "{refused}"
        );
        assert_eq!(check(true), Ok(()));
    }

    #[test]
    fn a_release_has_the_demonstrations_of_its_makefile() {
        let makefile = "EFSEND_APPS := efsend efnew\nTEST_APPS\t:= efsink \\\n\t\t   eflatency stats \\\n\t\t   $(EFSEND_APPS)\n\n\
             eflatency: eflatency.o efutils.o\n";
        let found = demos(makefile);
        let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["eflatency", "efnew", "efsend", "efsink"]);
        assert_eq!((found[1].1, found[3].1), ("", "receives frames"));
    }

    #[test]
    fn the_variant_is_what_sfboot_accepts() {
        let output = |variant: &str| {
            format!(
                "Solarflare boot configuration utility [v8.2.2]\n\nenp1s0f1:\n  Boot image      Option ROM only\n  Firmware variant   {variant}\n"
            )
        };
        assert_eq!(firmware_variant(&output("Ultra low latency")), Some(VARIANT));
        assert_eq!(firmware_variant(&output("Full feature / virtualization")), Some("full-feature"));
        assert_eq!(firmware_variant(&output("Something new")), None);
        assert_eq!(firmware_variant("enp1s0f1:\n  Boot image  Disabled\n"), None);
        assert_eq!(running_variant("8.2.2.1005 rx1 tx1"), Some(VARIANT));
        assert_eq!(running_variant("6.2.7.1001 rx0 tx0"), Some("full-feature"));
        assert_eq!(running_variant("6.2.7.1001 rx2 tx0"), Some("capture-packed-stream"));
        assert_eq!((running_variant("6.2.7.1001 rx9 tx0"), running_variant("rxq")), (None, None));
    }
}
