//! The claim that a judgement may make, which depends on how much was checked. Every command that judges decides here.

/// Number of things that were checked, and of those that could not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    /// Number checked, with any result.
    pub checked: usize,
    /// Number that could not be checked.
    pub unknown: usize,
}

/// The claim of a judgement. Each claim has one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Nothing is at fault, and at least half was checked.
    Clean,
    /// There are findings or differences.
    Findings,
    /// Nothing is known to be at fault, but less than half was checked.
    NotJudged,
}

impl Checked {
    /// The claim of a judgement that found something, or found nothing.
    pub fn claim(self, has_findings: bool) -> Claim {
        match has_findings {
            true => Claim::Findings,
            false if self.checked >= self.unknown => Claim::Clean,
            false => Claim::NotJudged,
        }
    }

    /// Returns "Could not judge: 84 of 90 settings could not be checked." if that is the claim. `what` is the plural
    /// of what is checked.
    pub fn not_judged(self, has_findings: bool, what: &str) -> Option<String> {
        (self.claim(has_findings) == Claim::NotJudged).then(|| {
            let all = self.checked + self.unknown;
            format!("Could not judge: {} of {all} {what} could not be checked.", self.unknown)
        })
    }
}

impl std::ops::Add for Checked {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { checked: self.checked + other.checked, unknown: self.unknown + other.unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_found_is_clean_only_if_half_was_checked() {
        let of = |checked, unknown| Checked { checked, unknown };
        assert_eq!(of(0, 90).claim(true), Claim::Findings);
        assert_eq!(of(1, 44).claim(false), Claim::NotJudged);
        assert_eq!(of(44, 45).claim(false), Claim::NotJudged);
        assert_eq!(of(45, 45).claim(false), Claim::Clean);
        assert_eq!(of(0, 0).claim(false), Claim::Clean, "nothing applies, so nothing is wrong");
        assert_eq!(of(0, 1).claim(false), Claim::NotJudged);
        let words = (of(1, 40) + of(0, 4)).not_judged(false, "rows").unwrap();
        assert_eq!(words, "Could not judge: 44 of 45 rows could not be checked.");
        assert_eq!(of(1, 44).not_judged(true, "rows"), None);
    }
}
