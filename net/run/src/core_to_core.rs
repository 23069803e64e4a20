//! Time that a cache line takes between two CPUs: the control of a network measurement.
//!
//! The times of sockets between two CPUs follow it, and in virtual machines it moves while they run.

use lowlat_cache::c2c::Method;
use lowlat_cores_run::cache::{Rounds, bounce};
use lowlat_host::CpuId;
use lowlat_jitter_run::clock::TickScale;
use lowlat_net::pingpong::{ControlRow, Figures};

/// Round trips of one control measurement.
const ROUNDS: Rounds = Rounds { warm_up: 2_000, measured: 20_000 };

/// Measures the two CPUs.
///
/// # Errors
/// A sentence if they cannot be measured.
pub fn measure(
    client: CpuId,
    server: CpuId,
    scale: TickScale,
    sizes_before: u32,
) -> Result<ControlRow, String> {
    let samples = bounce(Method::Store, (client, server), ROUNDS, scale);
    let samples = samples.map_err(|error| format!("The control is missing: {error}."))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of some nanoseconds")]
    let mut samples_ns: Vec<u64> = samples.into_iter().map(|ns| ns as u64).collect();
    let figures = Figures::of(&mut samples_ns, 99.0).ok_or("The control is missing: no samples.")?;
    Ok(ControlRow { sizes_before, client_cpu: client, server_cpu: server, figures })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host_run::affinity;

    #[test]
    fn two_cpus_have_a_control_and_missing_ones_have_none() {
        let allowed = affinity::current().unwrap();
        let mut cpus = allowed.iter();
        let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
            eprintln!("skipped: two_cpus_have_a_control: one CPU");
            return;
        };
        let row = measure(first, second, TickScale::new(1_000_000_000), 3).unwrap();
        assert_eq!((row.client_cpu, row.server_cpu, row.sizes_before), (first, second, 3));
        assert_eq!(row.figures.iterations, ROUNDS.measured / 10);
        assert!(row.figures.min_ns > 0);
        assert!(measure(first, 60_000, TickScale::NANOSECONDS, 0).unwrap_err().contains("60000"));
    }
}
