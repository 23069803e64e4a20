//! Times at which md publishes and strategies start, as in the Kungfu report: for runs and for the matrix.

use crate::arguments::duration_within;
use anyhow::ensure;
use clap::Args;
use lowlat_trade::scenario::Scenario;
use std::{path::PathBuf, time::Duration};

/// Format of --scenario, for the help.
pub const SCENARIO_HELP: &str = "\
A scenario (--scenario) is a JSON file with a thread's quotes and their times:
  {\"instruments\": 80, \"records_per_instrument\": 1000,
   \"interval_ns\": 100000000, \"start_delay_ns\": 1250000}
There are start_delay_ns between the first quotes of two instruments.";

/// Longest time between the starts of two strategies.
const START_INTERVAL_MAX: Duration = Duration::from_secs(3600);

#[derive(Debug, Args)]
pub struct ScenarioArguments {
    /// Publish the quotes of this JSON file, with a strategy for each instrument; see below
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Run a thread for each instrument in md, as in the Kungfu report
    #[arg(long)]
    pub md_threads: bool,
    /// Time between the starts of two strategies, 1s in the Kungfu report [default: none]
    #[arg(long, value_name = "TIME", value_parser = start_interval)]
    pub start_interval: Option<Duration>,
}

fn start_interval(text: &str) -> Result<Duration, String> {
    duration_within(text, Duration::ZERO..=START_INTERVAL_MAX, "at most 1h")
}

/// Shortest duration of a run, seconds: that of a scenario with one quote is 0.
const DURATION_S_MIN: f64 = 0.001;

/// Quotes per second over all instruments, and seconds from the first to the last.
pub fn rate_and_duration(scenario: &Scenario) -> (f64, f64) {
    let duration_s = (scenario.last_due_ns() as f64 / 1e9).max(DURATION_S_MIN);
    let has_rounds = scenario.records_per_instrument > 1 && scenario.interval_ns > 0;
    let rate_per_s = if has_rounds { scenario.rate_per_s() } else { scenario.records() as f64 / duration_s };
    (rate_per_s, duration_s)
}

impl ScenarioArguments {
    /// The scenario with at most so many instruments, if one is given.
    pub fn read(&self, instruments_max: u32) -> anyhow::Result<Option<Scenario>> {
        let Some(path) = &self.scenario else { return Ok(None) };
        let scenario = Scenario::read(path)?;
        ensure!(
            scenario.instruments <= instruments_max,
            "cannot run {}: it has {} instruments, and a run has at most {instruments_max} strategies\nhint: lower instruments",
            path.display(),
            scenario.instruments
        );
        Ok(Some(scenario))
    }

    /// The scenario's file, as every process finds it.
    pub fn path(&self) -> Option<String> {
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or(path.clone()).display().to_string();
        self.scenario.as_ref().map(whole)
    }

    /// Milliseconds between the starts of two strategies.
    pub fn start_interval_ms(&self) -> u32 {
        self.start_interval.map_or(0, |interval| u32::try_from(interval.as_millis()).unwrap_or(u32::MAX))
    }
}
