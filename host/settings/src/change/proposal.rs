//! Proposals of rows of the catalogue.

use super::{BootToken, Moment, Target, WhyLeftOut};
use lowlat_host::Reading;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedChange {
    pub target: Target,
    pub before: Reading<String>,
    pub after: String,
    pub moment: Moment,
}

/// The proposal of one row: changes, boot parameters, and the parts that it leaves out, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proposal {
    pub steps: Vec<ProposedChange>,
    /// Changes of the command line; the planner fills in `setting` and `before`.
    pub tokens: Vec<BootToken>,
    /// Parts that are left out, with the reason.
    pub left_out: Vec<(WhyLeftOut, String)>,
}

impl Proposal {
    /// An empty proposal with its reason.
    pub fn not(why: WhyLeftOut, text: impl Into<String>) -> Self {
        Self { left_out: vec![(why, text.into())], ..Self::default() }
    }

    /// A parameter with its new value, `""` for a bare word.
    #[must_use]
    pub fn token(self, name: &str, value: &str) -> Self {
        self.boot(name, Some(value.to_owned()))
    }

    /// A parameter that is removed from the line.
    #[must_use]
    pub fn without_token(self, name: &str) -> Self {
        self.boot(name, None)
    }

    fn boot(mut self, name: &str, value: Option<String>) -> Self {
        self.tokens.push(BootToken { setting: String::new(), name: name.to_owned(), value, before: None });
        self
    }

    /// A change that takes effect when it is applied, and again at each boot.
    #[must_use]
    pub fn step(self, target: Target, before: Reading<String>, after: impl Into<String>) -> Self {
        self.step_at(Moment::NowAndAtBoot, target, before, after)
    }

    /// A change with its moment.
    #[must_use]
    pub fn step_at(
        mut self,
        moment: Moment,
        target: Target,
        before: Reading<String>,
        after: impl Into<String>,
    ) -> Self {
        self.steps.push(ProposedChange { target, before, after: after.into(), moment });
        self
    }

    /// Adds a part that is left out.
    #[must_use]
    pub fn but_not(mut self, why: WhyLeftOut, text: impl Into<String>) -> Self {
        self.left_out.push((why, text.into()));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.tokens.is_empty()
    }
}
