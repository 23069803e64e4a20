//! Parameters that give up protection, error reports or evidence to avoid interruptions. The guide sets them;
//! lowlat never does so unasked.

use super::{BOOT, CPU_PARTITIONING, GUIDE, HAZARDS, PARAMETERS};
use lowlat_host::Reading;
use lowlat_settings::{Context, Judgement, Needs, Risk, Setting, Verdict, Want, judge};

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.selinux",
        name: "selinux=",
        reason: "Switches SELinux off, which saves a check on each system call that opens or sends. A thread \
                 that spins on memory makes no such calls.",
        cost: "No mandatory access control. Switching it on again requires a relabelling of every file \
               system.",
        risk: Risk::Security,
        effective: "/sys/fs/selinux does not exist.",
        guide: Want::Value("0"),
        hazard: "Gives up a protection that many firms must keep, to speed up calls that the hot path should \
                 not make.",
        sources: &[GUIDE, HAZARDS, PARAMETERS],
        judge: selinux,
        ..BOOT
    },
    Setting {
        id: "boot.audit",
        name: "audit=",
        reason: "Switches the audit subsystem off, which saves work at each system call.",
        cost: "No audit trail of who did what on the host.",
        risk: Risk::Compliance,
        effective: "`auditctl -s` reports that audit is not supported or disabled.",
        guide: Want::Value("0"),
        hazard: "Regulations often require an audit trail.",
        sources: &[GUIDE, HAZARDS, PARAMETERS],
        ..BOOT
    },
    Setting {
        id: "boot.mce",
        name: "mce=",
        reason: "Stops the polling for corrected hardware errors, which runs from a timer on every CPU. It \
                 also stops the interrupts that report them.",
        cost: "Failing memory modules go unnoticed until they fail for good.",
        risk: Risk::Ras,
        effective: "/sys/devices/system/machinecheck/machinecheck0/ignore_ce is 1.",
        reads: &["/sys/devices/system/machinecheck/machinecheck0/ignore_ce"],
        guide: Want::Value("ignore_ce"),
        hazard: "Corrected errors are no longer reported, so a memory module that is about to fail gives no \
                 warning.",
        sources: &[GUIDE, HAZARDS, CPU_PARTITIONING, "kernel Documentation/arch/x86/x86_64/machinecheck.rst"],
        judge: |context, setting| {
            judge::boot_token_shown(context, setting, "1", "polling was switched on again")
        },
        needs: Needs::X86,
        ..BOOT
    },
    Setting {
        id: "boot.ipv6.disable",
        name: "ipv6.disable=",
        reason: "Loads the IPv6 code without its sockets and addresses: no neighbour discovery and no router \
                 messages.",
        cost: "Programs that open IPv6 sockets fail to start.",
        risk: Risk::Availability,
        effective: "/sys/module/ipv6/parameters/disable is 1.",
        reads: &["/sys/module/ipv6/parameters/disable"],
        guide: Want::Value("1"),
        hazard: "Many daemons break, and the guide's own ip6tables calls fail. \
                 net.ipv6.conf.INTERFACE.disable_ipv6=1 disables it per interface.",
        sources: &[GUIDE, HAZARDS, "kernel Documentation/networking/ipv6.rst"],
        judge: |context, setting| {
            judge::boot_token_shown(context, setting, "1", "the kernel ignored the parameter")
        },
        ..BOOT
    },
    Setting {
        id: "boot.nmi_watchdog",
        name: "nmi_watchdog=",
        reason: "Keeps the hard lockup detector off from boot. The sysctl kernel.nmi_watchdog does the same \
                 at run time.",
        cost: "A CPU that hangs with interrupts off is not reported.",
        risk: Risk::Availability,
        effective: "/proc/sys/kernel/nmi_watchdog is 0.",
        reads: &["/proc/sys/kernel/nmi_watchdog"],
        guide: Want::Value("0"),
        hazard: "One of five settings in the guide that switch lockup detection off.",
        sources: &[GUIDE, HAZARDS, PARAMETERS],
        judge: |context, setting| {
            judge::boot_token_shown(context, setting, "0", "the detector was switched on after boot")
        },
        ..BOOT
    },
    Setting {
        id: "boot.nosoftlockup",
        name: "nosoftlockup",
        reason: "Switches off the soft lockup detector, whose timer and thread run on each CPU of \
                 kernel.watchdog_cpumask. nohz_full= removes isolated CPUs from that mask automatically.",
        cost: "A CPU that never schedules is not reported.",
        risk: Risk::Availability,
        effective: "/proc/sys/kernel/soft_watchdog is 0.",
        reads: &["/proc/sys/kernel/soft_watchdog"],
        guide: Want::State("present"),
        hazard: "One of five settings in the guide that switch lockup detection off, on housekeeping CPUs as \
                 well.",
        sources: &[GUIDE, HAZARDS, CPU_PARTITIONING, PARAMETERS],
        judge: |context, setting| {
            judge::boot_token_shown(context, setting, "0", "the detector was switched on after boot")
        },
        ..BOOT
    },
    Setting {
        id: "boot.mitigations",
        name: "mitigations=",
        reason: "Mitigations protect against attacks through the processor's speculation. They add work at \
                 each entry to the kernel and each switch between processes. A thread that spins on memory \
                 or on a bypassed socket is hardly affected.",
        cost: "Without them any program on the host may read the memory of others.",
        risk: Risk::Security,
        effective: "The files below /sys/devices/system/cpu/vulnerabilities show the mitigations in use.",
        trading: Want::State("your decision: lowlat gives no advice"),
        sources: &[PARAMETERS, "kernel Documentation/admin-guide/hw-vuln/index.rst"],
        judge: mitigations,
        ..BOOT
    },
];

/// Not applicable once it is on the line of a kernel that does not know it, as Debian's do not. The guide's line keeps it.
fn selinux(context: &Context<'_>, setting: &Setting) -> Judgement {
    let judgement = judge::boot_token(context, setting);
    let option = context.host.kernel.config_option("SECURITY_SELINUX_BOOTPARAM");
    match option {
        _ if judgement.verdict != Verdict::Good => return judgement,
        Reading::Known(None) => {}
        Reading::Known(Some(_)) => return judgement,
        _ => {
            const PLACE: &str = "the kernel's configuration";
            let listed = context.host.listed(PLACE, ());
            return if listed.is_known() { judgement } else { judge::missing(&listed, PLACE) };
        }
    }
    let because =
        "this kernel is built without CONFIG_SECURITY_SELINUX_BOOTPARAM and does not know the parameter";
    Judgement { verdict: Verdict::NotApplicable, because: because.to_owned(), ..judgement }
}

/// Reported but never advised: the row is neither good nor wrong.
fn mitigations(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let token =
        line.last("mitigations").map_or("not on the command line".to_owned(), |v| format!("mitigations={v}"));
    let exposed: Vec<String> = context
        .host
        .cpu
        .vulnerabilities
        .iter()
        .filter(|(_, state)| state.text().starts_with("Vulnerable"))
        .map(|(name, _)| name.clone())
        .collect();
    let observed = if exposed.is_empty() {
        token
    } else {
        format!("{token}; vulnerable to {}", judge::some_of(&exposed, 8))
    };
    Judgement::new(
        Verdict::NotApplicable,
        observed,
        "a security decision, which lowlat reports and does not make",
    )
    .at("/sys/devices/system/cpu/vulnerabilities")
}
