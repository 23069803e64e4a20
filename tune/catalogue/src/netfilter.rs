//! The packet filter, which the guide flushes and unloads in each boot. Modules that are never loaded filter nothing.
//! So a plan prevents loading them from the next boot on, with a file that a rollback removes.

use lowlat_settings::{
    Context, Judgement, Setting,
    change::{Moment, Proposal, Target, WhyLeftOut},
    judge,
};
use std::fmt::Write as _;

/// The file that prevents modprobe from loading the modules (modprobe.d(5)).
pub(super) const FILE: &str = "/etc/modprobe.d/lowlat-netfilter.conf";

/// The modules that step 5 of the guide's script unloads.
const MODULES: &[&str] = &[
    "ebtable_nat",
    "ebtables",
    "ip6_tables",
    "ip6table_filter",
    "ip6t_REJECT",
    "ip_tables",
    "ipt_MASQUERADE",
    "ipt_REJECT",
    "ipt_SYNPROXY",
    "iptable_filter",
    "iptable_mangle",
    "iptable_nat",
    "iptable_raw",
    "nf_conntrack",
    "nf_conntrack_ftp",
    "nf_conntrack_ipv4",
    "nf_conntrack_ipv6",
    "nf_conntrack_irc",
    "nf_conntrack_tftp",
    "nf_defrag_ipv4",
    "nf_defrag_ipv6",
    "nf_nat",
    "nf_nat_tftp",
    "nf_synproxy_core",
    "xt_CHECKSUM",
    "xt_CT",
    "xt_LOG",
    "xt_conntrack",
    "xt_multiport",
    "xt_state",
];

/// Good if none of the modules is loaded.
pub(super) fn judge(context: &Context<'_>, _: &Setting) -> Judgement {
    judge::known(&context.host.kernel.modules, "/proc/modules", |modules| {
        let loaded: Vec<String> =
            modules.iter().filter(|module| MODULES.contains(&module.as_str())).cloned().collect();
        if loaded.is_empty() {
            return judge::good_because("none is loaded", "parts built into the kernel are not listed there");
        }
        let because = if is_kept_out(context) { "loaded before they were kept out" } else { "" };
        Judgement::wrong(format!("loaded: {}", judge::some_of(&loaded, 8)), because)
    })
}

/// The file with the modules.
pub(super) fn keep_out(context: &Context<'_>, _: &Setting) -> Proposal {
    if is_kept_out(context) {
        return Proposal::not(
            WhyLeftOut::StateOfTheMoment,
            format!("{FILE} keeps the modules out; those that are loaded stay until the next boot"),
        );
    }
    let target = Target::OwnedFile { path: FILE.to_owned() };
    Proposal::default().step_at(Moment::AtBoot, target, context.host.file(FILE), text())
}

fn text() -> String {
    let mut text = String::from("# Written by lowlat; changes are lost when it applies a plan.\n");
    for module in MODULES {
        let _ = writeln!(text, "install {module} /bin/false");
    }
    text
}

fn is_kept_out(context: &Context<'_>) -> bool {
    context.host.file(FILE).text().trim() == text().trim()
}
