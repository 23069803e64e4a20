//! Judges a setting that a host has several times: one per interface, node, policy or pool.

use crate::{Context, Judgement, judge::first_of};
use lowlat_host::{CpuSet, Reading};

/// Number of items that a judgement lists before "and N more".
const NAMED_MAX: usize = 6;

/// The result for one of several items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum One {
    /// As wanted, with the observed state.
    Good(String),
    /// Not as wanted, with the observed state and the reason why that is wrong.
    Wrong(String, String),
    /// Could not be determined, with the reason.
    Unknown(String),
    /// Does not apply to this item, with the reason.
    Skip(String),
}

impl One {
    /// Judges a value of the item. `when_absent`: why the setting does not apply to an item without it.
    pub fn of<T>(reading: &Reading<T>, when_absent: &str, judge: impl FnOnce(&T) -> Self) -> Self {
        match reading {
            Reading::Known(value) => judge(value),
            Reading::Absent => Self::Skip(when_absent.to_owned()),
            other => Self::missing(other),
        }
    }

    /// The result for an item whose value cannot be read.
    pub fn missing<T>(reading: &Reading<T>) -> Self {
        Self::Unknown(reading.missing_in_words().unwrap_or_default())
    }
}

/// Combines the results. Wrong if one is wrong; otherwise unknown if one is unknown; otherwise good if one is
/// good. Not applicable if it applies to none or there are no items; `when_none` is then the reason.
pub fn judge_each(all: impl IntoIterator<Item = (String, One)>, when_none: &str) -> Judgement {
    let (mut good, mut wrong, mut unknown, mut skipped) = (Vec::new(), Vec::new(), Vec::new(), None);
    let mut reasons: Vec<String> = Vec::new();
    for (name, one) in all {
        match one {
            One::Good(seen) => good.push(format!("{name}: {seen}")),
            One::Wrong(seen, why) => {
                wrong.push(format!("{name}: {seen}"));
                if !why.is_empty() && !reasons.contains(&why) {
                    reasons.push(why);
                }
            }
            One::Unknown(why) => unknown.push(format!("{name}: {why}")),
            One::Skip(why) => skipped = skipped.or(Some(why)),
        }
    }
    if !wrong.is_empty() {
        return Judgement::wrong(list(&wrong), reasons.into_iter().next().unwrap_or_default());
    }
    if !unknown.is_empty() {
        return Judgement { observed: list(&good), ..Judgement::unknown(list(&unknown)) };
    }
    if !good.is_empty() {
        return Judgement::good(list(&good));
    }
    Judgement::not_applicable(skipped.unwrap_or_else(|| when_none.to_owned()))
}

/// The first names, separated by semicolons, and the number of further ones.
pub fn list(names: &[String]) -> String {
    first_of(names, NAMED_MAX, ["; ", "; and "])
}

/// The CPUs to isolate; none if the host has none.
pub fn isolated<'a>(context: &Context<'a>) -> Option<&'a CpuSet> {
    Some(&context.allocation.isolated).filter(|isolated| !isolated.is_empty())
}

/// The judgement for a host without CPUs to isolate.
pub fn none_isolated() -> Judgement {
    Judgement::not_applicable("no CPU is isolated on this host")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn of(ones: Vec<One>) -> Judgement {
        judge_each(ones.into_iter().enumerate().map(|(i, one)| (format!("eth{i}"), one)), "no interface")
    }

    #[test]
    fn one_wrong_thing_makes_the_row_wrong() {
        let judgement = of(vec![
            One::Good("0".into()),
            One::Wrong("50".into(), "why".into()),
            One::Unknown("denied".into()),
            One::Skip("virtual".into()),
        ]);
        assert_eq!((judgement.verdict, judgement.observed.as_str()), (Verdict::Wrong, "eth1: 50"));
        assert_eq!(judgement.because, "why");
    }

    #[test]
    fn good_unknown_skipped_and_none_are_told_apart() {
        let partly = of(vec![One::Unknown("denied".into()), One::Good("0".into())]);
        assert_eq!((partly.verdict, partly.observed.as_str()), (Verdict::Unknown, "eth1: 0"));
        assert_eq!(partly.because, "eth0: denied");
        assert_eq!(of(vec![One::Unknown("denied".into()), One::Skip("x".into())]).verdict, Verdict::Unknown);
        assert_eq!(of(vec![One::Skip("virtual".into())]), Judgement::not_applicable("virtual"));
        assert_eq!(of(vec![]), Judgement::not_applicable("no interface"));
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let judgement = of((0..9).map(|i| One::Wrong(i.to_string(), String::new())).collect());
        assert!(judgement.observed.ends_with("eth5: 5; and 3 more"), "{}", judgement.observed);
    }
}
