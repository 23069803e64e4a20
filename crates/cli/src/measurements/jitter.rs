//! Measurement of interruptions of user threads, on every CPU unless the user named some.

use super::Wanted;
use crate::choose;
use lowlat_jitter::{JitterMeasurement, JitterRecord, RemedyContext};
use lowlat_measure::jitter::{self, JitterError, JitterOptions, Observation};
use lowlat_result::Measurement;

pub fn measure(wanted: &Wanted<'_>, warnings: &mut Vec<String>) -> anyhow::Result<Option<Measurement>> {
    let Wanted { host, progress, .. } = wanted;
    let chosen = choose::all(wanted.cpus, &host.snapshot);
    warnings.extend(chosen.note);
    let options = JitterOptions::new(chosen.cpus, wanted.duration);
    progress.start(wanted.duration);
    let observation = Observation { causes: wanted.causes, ..Observation::default() };
    let run =
        jitter::run_observed(&host.root, &options, &observation, wanted.stop, &|now| progress.show(now));
    let Some(record) = kept(run, wanted.cpus.is_some(), warnings)? else { return Ok(None) };
    let mut measured = JitterMeasurement::from(record);
    let context = RemedyContext { host: &host.snapshot, allocation: &host.allocation, role: &host.role };
    if let Err(error) = measured.study_again(&context) {
        warnings.push(error.to_string());
    }
    Ok(Some(measured.into()))
}

/// Measures and returns the record. A run on named CPUs must succeed. Otherwise a failure is a warning, because the audit
/// deserves a report even without a measurement.
fn kept(
    run: Result<JitterRecord, JitterError>,
    are_named: bool,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Option<JitterRecord>> {
    match run {
        Ok(record) => Ok(Some(record)),
        Err(error @ (JitterError::ZeroDuration | JitterError::TooLong { .. })) => Err(error.into()),
        Err(error) if are_named => Err(error.into()),
        Err(error) => {
            let cause = error.to_string().replace("\nhint: ", "; ");
            warnings.push(format!("Nothing was measured: {cause}."));
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::CpuSet;

    #[test]
    fn a_host_that_cannot_be_measured_still_has_a_report() {
        let offline =
            || Err(JitterError::Offline { cpus: CpuSet::of(9), online: CpuSet::parse_list("0-7").unwrap() });
        let mut warnings = Vec::new();
        assert!(kept(offline(), true, &mut warnings).is_err());
        assert!(kept(Err(JitterError::ZeroDuration), false, &mut warnings).is_err());
        assert_eq!(warnings, [""; 0]);
        assert_eq!(kept(offline(), false, &mut warnings).unwrap(), None);
        assert!(
            warnings[0].starts_with("Nothing was measured: cannot measure CPU 9: not online"),
            "{warnings:?}"
        );
    }
}
