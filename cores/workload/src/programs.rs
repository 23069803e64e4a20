//! Output of other programs that measure workloads.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    pub operations: u64,
    pub per_s: f64,
    /// Bytes per second, where the program reports them.
    pub bytes_per_s: Option<f64>,
    /// Times of one operation, where they were taken.
    pub latency: Option<Latency>,
}

/// Times of one operation in a run. Those of lowlat's own workloads are of a sample, and include one reading of the
/// clock.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Latency {
    pub p50_ns: f64,
    pub p99_ns: f64,
}

/// Reads wrk's summary.
///
/// # Errors
/// What is missing, or what wrk counted as errors.
pub fn wrk(text: &str) -> Result<Figures, String> {
    let value = |label: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(label));
        line.map(str::trim).ok_or_else(|| format!("wrk printed no \"{label}\""))
    };
    for label in ["Socket errors:", "Non-2xx or 3xx responses:"] {
        if let Ok(errors) = value(label) {
            return Err(format!("wrk reports {} {errors}", label.to_lowercase()));
        }
    }
    let per_s = value("Requests/sec:")?;
    let bytes = value("Transfer/sec:")?;
    let operations = text.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok());
    Ok(Figures {
        operations: operations.ok_or("wrk printed no number of requests")?,
        per_s: number(per_s)?,
        bytes_per_s: Some(binary(bytes)?),
        // Older ones do not print them.
        latency: value("50%")
            .and_then(time)
            .ok()
            .zip(value("99%").and_then(time).ok())
            .map(|(p50_ns, p99_ns)| Latency { p50_ns, p99_ns }),
    })
}

/// Reads the line of a stressor from stress-ng's `--metrics-brief`.
///
/// # Errors
/// What is missing.
pub fn stress_ng(text: &str, stressor: &str) -> Result<Figures, String> {
    let fields = |line: &str| -> Option<Vec<String>> {
        let words: Vec<String> = line
            .split_once(']')
            .map_or(line, |(_, rest)| rest)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        (words.first().is_some_and(|word| word == stressor) && words.len() >= 6).then_some(words)
    };
    let found = text.lines().find_map(fields);
    let found = found.ok_or_else(|| format!("stress-ng printed no figures of {stressor}"))?;
    let field = |place: usize| found.get(place).map_or("", String::as_str);
    let operations =
        field(1).parse().map_err(|_| format!("stress-ng printed \"{}\" operations", field(1)))?;
    Ok(Figures { operations, per_s: number(field(5))?, bytes_per_s: None, latency: None })
}

/// Reads the line of a test of UnixBench: `COUNT|430000|1|lps`, operations of a run of so many seconds.
///
/// # Errors
/// What is missing.
pub fn unixbench(text: &str, seconds: f64) -> Result<Figures, String> {
    let count =
        text.lines().find_map(|line| line.trim().strip_prefix("COUNT|")?.split('|').next()?.parse().ok());
    let operations: u64 = count.ok_or("UnixBench printed no COUNT")?;
    if seconds <= 0.0 {
        return Err("UnixBench ran for no time".to_owned());
    }
    Ok(Figures { operations, per_s: operations as f64 / seconds, bytes_per_s: None, latency: None })
}

fn number(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| format!("\"{text}\" is no number"))
}

/// Nanoseconds of a time with wrk's units: "635.91us".
fn time(text: &str) -> Result<f64, String> {
    let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];
    let of = |(unit, ns): &(&str, f64)| Some(number(text.strip_suffix(unit)?).ok()? * ns);
    units.iter().find_map(of).ok_or_else(|| format!("\"{text}\" is no time"))
}

/// A number with wrk's binary units: "606.33MB".
fn binary(text: &str) -> Result<f64, String> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let exponent = match unit {
        "B" | "" => 0,
        "KB" => 1,
        "MB" => 2,
        "GB" => 3,
        "TB" => 4,
        _ => return Err(format!("\"{text}\" has an unknown unit")),
    };
    Ok(number(digits)? * 1024_f64.powi(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "Running 1s test @ https://127.0.0.1:8443/\n  2 threads and 10 connections\n  \
        Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   635.91us    0.89ms  12.92ms   93.69%\n    \
        Req/Sec    56.20k     8.07k   62.00k    86.54%\n  Latency Distribution\n     50%  412.00us\n     75%  \
        0.91ms\n     90%    1.46ms\n     99%    4.02ms\n  22464 requests in 1.00s, 17.76MB read\n\
        Requests/sec:  22411.53\nTransfer/sec:     17.72MB\n";

    #[test]
    fn wrk_s_summary_is_read_and_errors_are_none_of_its_figures() {
        let figures = wrk(WRK).unwrap();
        assert_eq!((figures.operations, figures.per_s), (22_464, 22_411.53));
        assert!((figures.bytes_per_s.unwrap() - 17.72 * 1024.0 * 1024.0).abs() < 1.0);
        let latency = figures.latency.unwrap();
        assert!((latency.p50_ns - 412e3).abs() < 1.0 && (latency.p99_ns - 4.02e6).abs() < 1.0, "{latency:?}");
        assert_eq!(wrk(&WRK.replace("50%  ", "50.000%  ")).unwrap().latency, None);
        let errors = WRK
            .replace("Requests/sec", "  Socket errors: connect 0, read 3, write 0, timeout 0\nRequests/sec");
        assert!(wrk(&errors).unwrap_err().contains("read 3"));
        assert!(wrk("unable to connect").unwrap_err().contains("Requests/sec"));
    }

    #[test]
    fn the_stressor_s_line_is_read() {
        let text = "stress-ng: info:  [71] dispatching hogs: 4 sem\n\
            stress-ng: metrc: [71] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s\n\
            stress-ng: metrc: [71]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)\n\
            stress-ng: metrc: [71] sem-sysv          81234      1.01      0.30      1.50     80429.70      45130.00\n";
        let figures = stress_ng(text, "sem-sysv").unwrap();
        assert_eq!((figures.operations, figures.per_s), (81_234, 80_429.70));
        assert!(stress_ng(text, "sem").unwrap_err().contains("no figures of sem"));
    }

    #[test]
    fn unixbench_counts_over_its_seconds() {
        let figures = unixbench("COUNT|430000|1|lps\n", 2.0).unwrap();
        assert!(figures.operations == 430_000 && (figures.per_s - 215_000.0).abs() < 1e-6);
        assert!(unixbench("", 2.0).is_err() && unixbench("COUNT|1|1|lps", 0.0).is_err());
    }
}
