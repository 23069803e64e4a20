//! What one row of the catalogue proposes.

use super::{BootToken, Moment, Target, WhyLeftOut};
use lowlat_host::Reading;

/// One thing that a row would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What.
    pub target: Target,
    /// What is there now.
    pub before: Reading<String>,
    /// What would be there.
    pub after: String,
    /// When it takes effect.
    pub moment: Moment,
}

/// What one row proposes: steps, boot parameters, and what it leaves alone with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proposal {
    /// What would be changed at run time.
    pub steps: Vec<Step>,
    /// What would be changed on the command line; `setting` and `before` are filled in by the planner.
    pub tokens: Vec<BootToken>,
    /// What is left alone.
    pub left_out: Vec<(WhyLeftOut, String)>,
}

impl Proposal {
    /// Nothing, and why.
    pub fn not(why: WhyLeftOut, text: impl Into<String>) -> Self {
        Self { left_out: vec![(why, text.into())], ..Self::default() }
    }

    /// A parameter with its new value, `""` for a bare word.
    #[must_use]
    pub fn token(mut self, name: &str, value: &str) -> Self {
        self.tokens.push(BootToken {
            setting: String::new(),
            name: name.to_owned(),
            value: Some(value.to_owned()),
            before: None,
        });
        self
    }

    /// A parameter that is taken off the line.
    #[must_use]
    pub fn without_token(mut self, name: &str) -> Self {
        self.tokens.push(BootToken {
            setting: String::new(),
            name: name.to_owned(),
            value: None,
            before: None,
        });
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
        self.steps.push(Step { target, before, after: after.into(), moment });
        self
    }

    /// Something beside the steps that is left alone.
    #[must_use]
    pub fn but_not(mut self, why: WhyLeftOut, text: impl Into<String>) -> Self {
        self.left_out.push((why, text.into()));
        self
    }

    /// Whether nothing would be changed.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.tokens.is_empty()
    }
}
