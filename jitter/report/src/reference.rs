//! A published run beside this one.

use lowlat_jitter::{GUIDE_RUN, JitterStudy};
use lowlat_text::units::{count, duration, plural, rate};

/// Returns the guide's result and this run's, if both count the same gaps.
pub fn sentence(study: &JitterStudy) -> Option<String> {
    let own = study.all.rate?;
    let guide = &GUIDE_RUN;
    (study.threshold_ns == guide.threshold_ns).then(|| {
        format!(
            "For comparison, {}: {} interruptions of {} or longer on {} in {} s, {} per second on each CPU. This run: {}.",
            guide.name,
            count(guide.interruption_count.into()),
            duration(guide.threshold_ns),
            plural(guide.cpu_count as usize, "isolated CPU"),
            guide.duration_s,
            rate(guide.rate_per_s()),
            rate(own.per_s)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::statistics::RateInterval;

    #[test]
    fn the_guides_run_is_named_where_the_threshold_is_the_same() {
        let mut study = JitterStudy { threshold_ns: 100, ..JitterStudy::default() };
        assert_eq!(sentence(&study), None, "nothing was sampled");
        study.all.rate = RateInterval::of(61, 610.0);
        assert_eq!(
            sentence(&study).unwrap(),
            "For comparison, guide 57037: 10 interruptions of 100 ns or longer on 14 isolated CPUs in 610 s, \
             0.0012 per second on each CPU. This run: 0.10."
        );
        study.threshold_ns = 250;
        assert_eq!(sentence(&study), None);
    }
}
