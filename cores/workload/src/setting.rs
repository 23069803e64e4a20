//! Settings under which a workload is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Conditions under which a workload is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Rule that chooses the CPUs.
    pub place: Place,
    pub idle: Idle,
    /// Scheduling policy of the processes.
    pub policy: Policy,
}

/// Rule that chooses the CPU of each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// None: the kernel chooses, and moves processes.
    #[default]
    Kernel,
    /// All processes on one CPU.
    One,
    /// Fills a cluster before the next.
    Pack,
    /// One per cluster before a second in any.
    Spread,
}

/// Use of idle states by idle CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// As the host is set.
    #[default]
    Allowed,
    /// None: /dev/cpu_dma_latency is held at 0.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// SCHED_OTHER.
    #[default]
    Other,
    /// SCHED_BATCH: a process that wakes does not preempt.
    Batch,
    /// SCHED_FIFO with priority 1.
    Fifo,
}

impl Place {
    /// Every rule, in the order of a report.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::One, Self::Pack, Self::Spread];

    /// Returns its name in arguments.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::One => "one",
            Self::Pack => "pack",
            Self::Spread => "spread",
        }
    }
}

impl Idle {
    /// Both, in the order of a report.
    pub const ALL: [Self; 2] = [Self::Allowed, Self::None];

    /// Returns its name in arguments.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::None => "none",
        }
    }
}

impl Policy {
    pub const ALL: [Self; 3] = [Self::Other, Self::Batch, Self::Fifo];

    /// Returns its name in arguments.
    pub fn word(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Batch => "batch",
            Self::Fifo => "fifo",
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "place={}", self.place.word())?;
        if self.idle != Idle::Allowed {
            write!(f, ",idle={}", self.idle.word())?;
        }
        if self.policy != Policy::Other {
            write!(f, ",policy={}", self.policy.word())?;
        }
        Ok(())
    }
}

impl FromStr for Setting {
    type Err = String;

    /// Parses "place=spread,idle=none,policy=batch"; each part may be missing.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut setting = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, word) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "place" => setting.place = choice(key, word, &Place::ALL, Place::word)?,
                "idle" => setting.idle = choice(key, word, &Idle::ALL, Idle::word)?,
                "policy" => setting.policy = choice(key, word, &Policy::ALL, Policy::word)?,
                _ => return Err(format!("\"{key}\": expected place, idle or policy")),
            }
        }
        Ok(setting)
    }
}

fn choice<T: Copy>(key: &str, word: &str, all: &[T], word_of: fn(T) -> &'static str) -> Result<T, String> {
    all.iter().copied().find(|one| word_of(*one) == word).ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|one| word_of(*one)).collect();
        format!("\"{key}={word}\": expected {key}={}", words.join("|"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_their_text_and_wrong_ones_name_the_choices() {
        for place in Place::ALL {
            for idle in Idle::ALL {
                for policy in Policy::ALL {
                    let setting = Setting { place, idle, policy };
                    assert_eq!(setting.to_string().parse(), Ok(setting));
                }
            }
        }
        assert_eq!("".parse(), Ok(Setting::default()));
        for (text, part) in [
            ("place=near", "place=kernel|one|pack|spread"),
            ("idle", "idle=allowed|none"),
            ("speed=1", "\"speed\""),
        ] {
            let error = text.parse::<Setting>().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
