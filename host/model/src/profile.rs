//! Named sets of wanted values.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A named set of wanted values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Profile {
    /// Settings that work on current kernels.
    #[default]
    #[serde(rename = "trading")]
    Trading,
    /// The AMD/HPE guide 57037 to the letter, with its hazards flagged.
    #[serde(rename = "guide-57037")]
    Guide57037,
}

impl Profile {
    pub const ALL: [Self; 2] = [Self::Trading, Self::Guide57037];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trading => "trading",
            Self::Guide57037 => "guide-57037",
        }
    }

    /// Returns the purpose in one sentence.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Trading => "Isolated CPUs for trading threads, with settings that work on current kernels.",
            Self::Guide57037 => {
                "The AMD/HPE guide for EPYC 7F32, 7F52 and 7F72 to the letter. `--role guide-57037` also accepts its risks."
            }
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|profile| profile.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("unknown profile \"{text}\"; available: {}", names.join(", "))
        })
    }
}
