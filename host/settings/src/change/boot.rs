//! Proposals of boot rows for the command line.

use super::files::value;
use super::{Proposal, WhyLeftOut};
use crate::{Context, Setting, Want, compare::size_bytes, judge::boot_key};
use lowlat_host::{Profile, Reading};

/// Clock sources that read the time stamp counter.
const COUNTER_CLOCKS: [&str; 5] = ["", "tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// The row's parameter with the wanted value, or a bare word if its presence is wanted.
pub fn parameter(context: &Context<'_>, setting: &Setting) -> Proposal {
    let name = boot_key(setting);
    match (setting.want(context.profile), value(context, setting)) {
        (Want::State("present"), _) => Proposal::default().token(name, ""),
        (_, Some(value)) => Proposal::default().token(name, &value),
        _ => Proposal::not(
            WhyLeftOut::YourChoice,
            "several parameters are possible, and lowlat does not choose one",
        ),
    }
}

/// The parameter, unless the kernel is known to be built without the option that it needs.
fn where_built(context: &Context<'_>, setting: &Setting, option: &str) -> Proposal {
    if context.host.kernel.config_option(option) == Reading::Known(None) {
        let text = format!("this kernel is built without CONFIG_{option}; use one that is built with it");
        return Proposal::not(WhyLeftOut::Kernel, text);
    }
    parameter(context, setting)
}

/// CPUs without a tick. `nohz=off` would keep the tick on every CPU and is removed.
pub fn nohz_full(context: &Context<'_>, setting: &Setting) -> Proposal {
    let proposal = where_built(context, setting, "NO_HZ_FULL");
    let is_off = context.host.kernel.tokens().last("nohz") == Some("off");
    if is_off && context.profile == Profile::Trading && !proposal.is_empty() {
        return proposal.without_token("nohz");
    }
    proposal
}

/// CPUs whose RCU callbacks run on other CPUs.
pub fn rcu_nocbs(context: &Context<'_>, setting: &Setting) -> Proposal {
    where_built(context, setting, "RCU_NOCB_CPU")
}

/// Marks the counter as reliable only where the kernel already uses it.
pub fn tsc(context: &Context<'_>, setting: &Setting) -> Proposal {
    let in_use = context.host.cpu.clocksource.text();
    if COUNTER_CLOCKS.contains(&in_use) {
        return parameter(context, setting);
    }
    let text = format!(
        "the kernel uses {in_use} instead of the time stamp counter; find the reason in its log before you disable \
         the check"
    );
    Proposal::not(WhyLeftOut::Hardware, text)
}

/// Removes a forced clock source: the kernel chooses the counter automatically where it is reliable.
pub fn clock_source(context: &Context<'_>, _: &Setting) -> Proposal {
    if context.host.kernel.tokens().last("clocksource") == Some("tsc") {
        return Proposal::not(
            WhyLeftOut::Hardware,
            "the kernel found the time stamp counter unusable; see its log",
        );
    }
    Proposal::default().without_token("clocksource")
}

/// The pair `hugepagesz=` and `hugepages=`. Their order matters, so a line that reserves other sizes is not
/// changed.
pub fn huge_pages(context: &Context<'_>, setting: &Setting) -> Proposal {
    const TWO_MIB: u64 = 2 << 20;
    let line = context.host.kernel.tokens();
    let is_other = |value: Option<&str>| value.and_then(size_bytes) != Some(TWO_MIB);
    if line.all("hugepagesz").any(is_other) {
        return Proposal::not(
            WhyLeftOut::YourChoice,
            "the command line reserves pages of other sizes, and each hugepages= belongs to the hugepagesz= before \
             it; add the pair manually",
        );
    }
    let is_count = setting.id == "boot.hugepages";
    super::memory::too_many(context).filter(|_| is_count).unwrap_or_else(|| parameter(context, setting))
}
