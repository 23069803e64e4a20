//! A scenario: number and times of the quotes of each instrument.

use lowlat_node::Refusal;
use lowlat_pipeline::PipelineParameters;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Largest file that is read.
const JSON_BYTES_MAX: u64 = 1 << 30;
pub const INSTRUMENTS_MAX: u32 = 65_536;
/// Quotes of an instrument in a scenario without an end, at most.
const RECORDS_ENDLESS: f64 = 1e14;

/// Work of md's threads in the Kungfu report, one thread for each instrument, as in its JSON file. Here one loop does
/// the work of all threads.
///
/// ```json
/// { "name": "A11", "instruments": 80, "records_per_instrument": 1000,
///   "interval_ns": 100000000, "start_delay_ns": 1250000 }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, for display only.
    #[serde(default)]
    pub name: String,
    /// Number of instruments, numbered from 0: the report's threads.
    pub instruments: u32,
    pub records_per_instrument: u64,
    /// From one quote of an instrument to its next one, ns.
    pub interval_ns: u64,
    /// From the first quote of an instrument to the first one of the next instrument, ns. 0: all begin at once.
    pub start_delay_ns: u64,
    /// Number of instruments, the first ones, that have one quote more.
    #[serde(default)]
    pub instruments_with_one_more: u32,
}

impl Scenario {
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(JSON_BYTES_MAX + 1).read_to_string(&mut text));
        let read = read.and_then(|bytes| match bytes as u64 {
            0..=JSON_BYTES_MAX => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 GiB")),
        });
        read.map_err(|error| {
            let path = path.display();
            Refusal::new(format!("cannot read {path}: {error}\nhint: check the path and its permissions"))
        })?;
        Self::parse(path, &text)
    }

    /// Reads a scenario from text; `path` names it in errors.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Refusal> {
        let scenario: Self = serde_json::from_str(text).map_err(|error| wrong_json(path, text, &error))?;
        scenario.check().map_err(|(field, found, expected)| {
            wrong(path, place_of(text, field), &format!("{field} {found}"), expected, "correct the value")
        })?;
        Ok(scenario)
    }

    /// A scenario with this rate over all instruments, spread evenly, and as many quotes as fit into the duration, but
    /// at least one. `None` if a number is not above 0 or the times do not fit.
    pub fn at_rate(instruments: u32, rate_per_s: f64, duration_s: f64) -> Option<Self> {
        let is_positive = |number: f64| number.is_finite() && number > 0.0;
        if instruments == 0 || !is_positive(rate_per_s) || !is_positive(duration_s) {
            return None;
        }
        // If the product is a whole number except for rounding, all its quotes count.
        let quotes = (rate_per_s * duration_s + 1e-6).floor().max(1.0);
        let rounds = (quotes / f64::from(instruments)).floor();
        let (instruments, records) =
            if rounds < 1.0 { (u32::try_from(whole(quotes)?).ok()?, 1.0) } else { (instruments, rounds) };
        let more = quotes - f64::from(instruments) * records;
        let interval_ns = (f64::from(instruments) * 1e9 / rate_per_s).round();
        let scenario = Self {
            name: format!("{instruments} instruments, {rate_per_s}/s"),
            instruments,
            records_per_instrument: whole(records)?,
            interval_ns: whole(interval_ns)?,
            start_delay_ns: whole((1e9 / rate_per_s).round())?,
            instruments_with_one_more: u32::try_from(whole(more)?).ok()?,
        };
        scenario.check().is_ok().then_some(scenario)
    }

    /// A scenario with this rate for as long as the numbers allow: 31 years, and 115 days at 10 million quotes per second and instrument.
    pub fn endless(instruments: u32, rate_per_s: f64) -> Option<Self> {
        let longest_s = RECORDS_ENDLESS * f64::from(instruments) / rate_per_s;
        Self::at_rate(instruments, rate_per_s, PipelineParameters::ENDLESS_S.min(longest_s))
    }

    /// Number of quotes of all instruments.
    pub fn records(&self) -> u64 {
        u64::from(self.instruments) * self.records_per_instrument + u64::from(self.instruments_with_one_more)
    }

    /// Number of quotes of an instrument.
    pub fn records_of(&self, instrument: u32) -> u64 {
        self.records_per_instrument + u64::from(instrument < self.instruments_with_one_more)
    }

    /// When the last quote is due, ns after the start.
    pub fn last_due_ns(&self) -> u64 {
        let last_start = self.start_delay_ns.saturating_mul(u64::from(self.instruments.saturating_sub(1)));
        let inside = self.interval_ns.saturating_mul(self.records_per_instrument.saturating_sub(1));
        let more = self.instruments_with_one_more.checked_sub(1).map_or(0, |last| {
            let rounds = self.interval_ns.saturating_mul(self.records_per_instrument);
            self.start_delay_ns.saturating_mul(u64::from(last)).saturating_add(rounds)
        });
        last_start.saturating_add(inside).max(more)
    }

    /// Quotes per second once all instruments have begun; infinite when there is no time between them.
    pub fn rate_per_s(&self) -> f64 {
        f64::from(self.instruments) * 1e9 / self.interval_ns as f64
    }

    /// Checks the values. The error is a field's name in the file, its value, and the expected value.
    fn check(&self) -> Result<(), (&'static str, u64, &'static str)> {
        let records_max = u64::MAX / u64::from(INSTRUMENTS_MAX);
        let fits = |factor: u64, count: u64| factor.checked_mul(count).is_some_and(|ns| ns < u64::MAX / 4);
        let expected = "so much that the last quote is due within 146 years of the start";
        let (instruments, records) = (u64::from(self.instruments), self.records_per_instrument);
        let more = u64::from(self.instruments_with_one_more);
        let checks = [
            ("instruments", instruments, (1..=INSTRUMENTS_MAX).contains(&self.instruments), "1 to 65536"),
            ("records_per_instrument", records, (1..=records_max).contains(&records), "1 to 2^48 - 1"),
            ("instruments_with_one_more", more, more < instruments, "less than instruments"),
            ("interval_ns", self.interval_ns, fits(self.interval_ns, records), expected),
            ("start_delay_ns", self.start_delay_ns, fits(self.start_delay_ns, instruments), expected),
        ];
        let wrong = checks.into_iter().find(|(_, _, is_right, _)| !is_right);
        wrong.map_or(Ok(()), |(field, found, _, expected)| Err((field, found, expected)))
    }
}

fn wrong_json(path: &Path, text: &str, error: &serde_json::Error) -> Refusal {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(before, _)| before);
    let (found, expected) = match message.split_once(", expected ") {
        Some((found, expected)) => (found.to_owned(), expected.to_owned()),
        None if error.is_eof() => {
            ("the end of the file".to_owned(), "the rest of the JSON object".to_owned())
        }
        None => {
            let line = error.line().checked_sub(1);
            let raw = line.and_then(|line| text.lines().nth(line)).unwrap_or_default().trim();
            (format!("{message} in '{raw}'"), "a JSON object with each field once".to_owned())
        }
    };
    wrong(path, (error.line(), error.column()), &found, &expected, "correct the file there")
}

/// `line` and `column` count from 1; zeros stand for the whole file or line.
fn wrong(path: &Path, (line, column): (usize, usize), found: &str, expected: &str, hint: &str) -> Refusal {
    Refusal::new(format!(
        "cannot parse {}, line {line}, column {column}: found {found}, expected {expected}\nhint: {hint}",
        path.display()
    ))
}

/// Line and column of a field's name; zeros if the file leaves the field out.
fn place_of(text: &str, field: &str) -> (usize, usize) {
    let quoted = format!("\"{field}\"");
    (1..)
        .zip(text.lines())
        .find_map(|(line, content)| {
            let before = content.find(&quoted)?;
            Some((line, content.get(..before)?.chars().count() + 1))
        })
        .unwrap_or((0, 0))
}

/// A float without a fraction as an integer; `None` if it is too large for one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked right here")]
fn whole(number: f64) -> Option<u64> {
    (0.0..9e18).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        Scenario::parse(Path::new("some.json"), text).unwrap_err().to_string()
    }

    const GOOD: &str = r#"{
  "instruments": 80,
  "records_per_instrument": 10,
  "interval_ns": 1000,
  "start_delay_ns": 5
}"#;

    #[test]
    fn a_file_is_read_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, GOOD).unwrap();
        let scenario = Scenario::read(&path).unwrap();
        assert_eq!((scenario.instruments, scenario.records()), (80, 800));
        assert_eq!(scenario.last_due_ns(), 79 * 5 + 9 * 1000);
        let again = serde_json::to_string(&scenario).unwrap();
        assert_eq!(Scenario::parse(&path, &again).unwrap(), scenario);
    }

    #[test]
    fn errors_lead_to_the_place() {
        let unknown = GOOD.replace("interval_ns", "interval_us");
        let error = error_of(&unknown);
        assert!(error.starts_with("cannot parse some.json, line 4, column"), "{error}");
        assert!(error.contains("interval_us") && error.contains("`interval_ns`"), "{error}");
        let error = error_of(&GOOD.replace("80", "\"many\""));
        assert!(error.contains("line 2") && error.contains("expected u32"), "{error}");
        let error = error_of(&GOOD.replace("80", "0"));
        assert!(
            error.contains("line 2, column 3: found instruments 0, expected 1 to 65536\nhint: correct"),
            "{error}"
        );
        let error =
            error_of(&GOOD.replace("\"start_delay_ns\": 5", "\"start_delay_ns\": 18446744073709551615"));
        assert!(error.contains("line 5") && error.contains("146 years"), "{error}");
        let error = error_of(&GOOD[..40]);
        assert!(error.contains("end of the file"), "{error}");
        let error = error_of(&GOOD.replace("1000", "1000, \"interval_ns\": 1"));
        assert!(error.contains("duplicate field"), "{error}");
        let error = Scenario::read(Path::new("/nonexistent/x.json")).unwrap_err().to_string();
        assert!(error.contains("cannot read /nonexistent/x.json: "), "{error}");
    }

    #[test]
    fn a_rate_is_spread_over_the_instruments() {
        let scenario = Scenario::at_rate(80, 800.0, 10.0).unwrap();
        assert_eq!((scenario.interval_ns, scenario.start_delay_ns), (100_000_000, 1_250_000));
        assert_eq!(scenario.records(), 8000);
        assert!((scenario.rate_per_s() - 800.0).abs() < 1e-9);
        let of = |instruments, rate, duration| {
            let scenario = Scenario::at_rate(instruments, rate, duration).unwrap();
            (scenario.instruments, scenario.records())
        };
        assert_eq!(of(80, 0.2, 5.0), (1, 1), "one quote in 5 s, and not 80 in 400 s");
        assert_eq!(of(80, 0.2, 1.0), (1, 1), "one at least");
        assert_eq!(of(80, 8.0, 3.0), (24, 24));
        assert_eq!(of(80, 32.0, 4.0), (80, 128), "the first instruments have one more");
        let scenario = Scenario::at_rate(1000, 800.0, 2.0).unwrap();
        assert_eq!(
            (scenario.records(), scenario.last_due_ns()),
            (1600, 1_998_750_000),
            "up to the end of the time"
        );
        assert_eq!(of(1, 500.0, 5.0), (1, 2_500));
        for rate in [0.001, 800.0, 1e7] {
            let scenario = Scenario::endless(1, rate).unwrap();
            assert!(scenario.last_due_ns() / 1_000_000_000 >= 9_999_999, "{rate}: 115 days");
        }
        for (instruments, rate, duration) in
            [(0, 1.0, 1.0), (1, 0.0, 1.0), (1, f64::NAN, 1.0), (1, 1.0, -1.0), (1, 1e-300, 1.0)]
        {
            assert_eq!(Scenario::at_rate(instruments, rate, duration), None);
        }
    }
}
