//! The type of a setting, its judges and its changes. The settings themselves are in `lowlat-catalogue`.
//!
//! Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod audit;
mod catalogue;
pub mod change;
mod checked;
pub mod compare;
mod finding;
pub mod judge;
mod setting;

pub use catalogue::Catalogue;
pub use checked::{Checked, Claim};
pub use compare::same_meaning;
pub use finding::{Finding, Judgement, Verdict};
pub use setting::{Impact, Layer, Makers, Needs, Risk, Setting, Want};

use lowlat_host::{Allocation, HostSnapshot, Profile, Role};

/// Everything a judge may read.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The facts about the host.
    pub host: &'a HostSnapshot,
    /// The user's requirements for the host.
    pub role: &'a Role,
    /// The CPUs chosen for housekeeping and isolation.
    pub allocation: &'a Allocation,
    /// The profile to judge by.
    pub profile: Profile,
    /// All settings, for judges that depend on other rows.
    pub catalogue: Catalogue,
}

/// Judges one setting: first whether it applies to the profile and the kernel, then with its own judge.
pub fn judge_one(context: &Context<'_>, setting: &Setting) -> Finding {
    let wanted = setting.want(context.profile).text(context);
    let judgement = judgement(context, setting);
    let is_guide = context.profile == Profile::Guide57037;
    let is_risk_accepted = context.role.accepts(setting.id);
    Finding::of(setting, judgement, wanted.unwrap_or_default(), is_guide, is_risk_accepted)
}

/// Judges one setting as [`judge_one`] does, without the texts of the catalogue.
pub fn judgement(context: &Context<'_>, setting: &Setting) -> Judgement {
    let want = setting.want(context.profile);
    let judgement = judge::inapplicable(context, setting, &want, want.text(context).as_deref())
        .unwrap_or_else(|| (setting.judge)(context, setting));
    judge::unless_unread(context, setting, &want, judgement)
}
