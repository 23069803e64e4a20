use super::*;
use crate::{CauseShares, CpuStudy, JitterStudy, Percentile, TotalStudy};
use lowlat_host::{CpuSet, statistics::RateInterval};
use proptest::prelude::*;

fn quiet(cpu: u32) -> CpuStudy {
    CpuStudy {
        cpu,
        runtime_s: 610.0,
        rate: RateInterval::of(0, 610.0),
        lost_share: Some(0.0),
        time_percentiles: vec![Percentile { quantile: 0.999, length_ns: 0 }],
        ..CpuStudy::default()
    }
}

fn busy(cpu: u32, count: u64) -> CpuStudy {
    CpuStudy {
        isolation: None,
        cpu,
        runtime_s: 610.0,
        missed_s: 0.0,
        count,
        rate: RateInterval::of(count, 610.0),
        lost_share: Some(0.02),
        length_ns_max: Some(12_345),
        length_ns_mean: Some(900.5),
        time_percentiles: vec![Percentile { quantile: 0.999, length_ns: 47 }],
        percentiles: vec![Percentile { quantile: 0.5, length_ns: 700 }],
    }
}

fn study(cpus: Vec<CpuStudy>, shares: Option<CauseShares>) -> JitterStudy {
    let count = cpus.iter().map(|cpu| cpu.count).sum();
    let core_seconds = cpus.iter().map(|cpu| cpu.runtime_s).sum();
    let all = TotalStudy { core_seconds, count, ..TotalStudy::default() };
    JitterStudy { threshold_ns: 100, cpus, all, shares, ..JitterStudy::default() }
}

fn lines(gate: &str, study: &JitterStudy) -> Vec<String> {
    Gate::parse(gate).unwrap().evaluate(study).rows.iter().map(GateRow::line).collect()
}

#[test]
fn each_clause_is_compared_with_each_cpu() {
    let study = study(vec![quiet(1), busy(5, 10)], None);
    let gate = Gate::parse(" max < 10us, rate<0.1/s ,time-p99.9<=47ns,lost<2%,count>=1,mean<1us").unwrap();
    assert_eq!(gate.to_string(), "max<10us,rate<0.1/s,time_p99.9<=47ns,lost<2%,count>=1,mean<1us");
    let outcome = gate.evaluate(&study);
    let lines: Vec<String> = outcome.rows.iter().map(GateRow::line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    CPU 1: max -, limit <10us: held (no interruption of 100 ns or longer in 610 s)
    CPU 5: max 12.345us, limit <10us: broken
    CPU 1: rate 0/s, limit <0.1/s: held
    CPU 5: rate 0.0163934/s, limit <0.1/s: held
    CPU 1: time_p99.9 0ns, limit <=47ns: held
    CPU 5: time_p99.9 47ns, limit <=47ns: held
    CPU 1: lost 0%, limit <2%: held
    CPU 5: lost 2%, limit <2%: broken
    CPU 1: count 0, limit >=1: broken
    CPU 5: count 10, limit >=1: held
    CPU 1: mean -, limit <1us: not shown (no interruption in 610 s; limit max, rate or a percentile over time)
    CPU 5: mean 0.9005us, limit <1us: held
    ");
    assert_eq!((outcome.verdict, outcome.is_held(), outcome.failed().count()), (Verdict::Broken, false, 4));
}

#[test]
fn what_the_count_does_not_carry_is_not_shown_and_fails() {
    let study = study(vec![quiet(1), busy(5, 40)], None);
    for gate in ["p99.9<1ms", "time_p99.99<1ms", "unexplained<5%", "p50<1us"] {
        let outcome = Gate::parse(gate).unwrap().evaluate(&study);
        assert_eq!((outcome.verdict, outcome.is_held()), (Verdict::NotShown, false), "{gate}");
    }
    assert_eq!(
        lines("p99.9<1ms", &study)[1],
        "CPU 5: p99.9 -, limit <1ms: not shown (too few interruptions (40); run longer)"
    );
    let nothing = JitterStudy { threshold_ns: 100, ..JitterStudy::default() };
    for key in ["max<1s", "count<1", "named>1%", "not_traced<1%"] {
        assert_eq!(Gate::parse(key).unwrap().evaluate(&nothing).verdict, Verdict::NotShown, "{key}");
    }
    let unsampled = JitterStudy { cpus: vec![CpuStudy::default()], ..nothing };
    assert_eq!(lines("count<1", &unsampled), ["CPU 0: count -, limit <1: not shown (nothing was sampled)"]);
}

#[test]
fn a_quiet_cpu_holds_what_the_threshold_can_show() {
    let study = study(vec![quiet(3)], None);
    let verdict = |gate: &str| Gate::parse(gate).unwrap().evaluate(&study).verdict;
    assert_eq!(verdict("max<100ns"), Verdict::Held);
    assert_eq!(verdict("max<99ns"), Verdict::NotShown);
    assert_eq!(verdict("max>100ns"), Verdict::Broken);
    assert_eq!(verdict("max>50ns"), Verdict::NotShown);
    assert_eq!(
        (verdict("rate<=0/s"), verdict("count<1"), verdict("lost<=0%")),
        (Verdict::Held, Verdict::Held, Verdict::Held)
    );
    assert_eq!((verdict("unexplained<5%"), verdict("named>95%")), (Verdict::Held, Verdict::NotShown));
    assert_eq!(verdict("max<10us,p50<1us"), Verdict::NotShown);
}

#[test]
fn a_rate_says_when_its_interval_reaches_over_the_limit() {
    let study = study(vec![busy(5, 10)], None);
    let note = |gate: &str| Gate::parse(gate).unwrap().evaluate(&study).rows.remove(0).note;
    // 10 in 610 s are 0.0164/s, 0.0079 to 0.0301.
    assert_eq!(note("rate<0.02/s"), "held, but the interval reaches 0.0301481/s: run longer to show it");
    assert_eq!(note("rate<0.01/s"), "broken, but the interval starts at 0.00786129/s: run longer to show it");
    assert_eq!(note("rate>0.01/s"), "held, but the interval starts at 0.00786129/s: run longer to show it");
    assert_eq!(note("rate>0.02/s"), "broken, but the interval reaches 0.0301481/s: run longer to show it");
    assert_eq!((note("rate<0.05/s"), note("rate<0.001/s")), (String::new(), String::new()));
    let verdict = |gate: &str| Gate::parse(gate).unwrap().evaluate(&study).verdict;
    assert_eq!((verdict("rate_high<0.02/s"), verdict("rate_high<0.04/s")), (Verdict::Broken, Verdict::Held));
}

#[test]
fn shares_count_what_was_not_traced_against_the_gate() {
    let shares = |unexplained, not_traced| CauseShares {
        named: 0.9,
        unexplained,
        not_traced,
        ..CauseShares::default()
    };
    let verdict = |gate: &str, shares| {
        let study = study(vec![busy(5, 40)], Some(shares));
        let outcome = Gate::parse(gate).unwrap().evaluate(&study);
        assert_eq!((outcome.rows.len(), outcome.rows[0].cpu), (1, None));
        outcome.verdict
    };
    assert_eq!(verdict("unexplained<5%", shares(0.04, 0.0)), Verdict::Held);
    assert_eq!(verdict("unexplained<5%", shares(0.06, 0.0)), Verdict::Broken);
    assert_eq!(verdict("unexplained<5%", shares(0.04, 0.02)), Verdict::NotShown);
    assert_eq!(verdict("named>95%", shares(0.0, 0.01)), Verdict::Broken);
    assert_eq!(verdict("named>95%", shares(0.0, 0.1)), Verdict::NotShown);
    assert_eq!(verdict("not_traced<5%", shares(0.0, 0.1)), Verdict::Broken);
    assert_eq!(verdict("firmware<=0%", shares(0.1, 0.0)), Verdict::Held);
    assert_eq!(verdict("entry_exit<1%", shares(0.1, 0.0)), Verdict::Held);
}

#[test]
fn errors_say_what_was_read_where_and_what_was_expected() {
    let error = |text: &str| Gate::parse(text).unwrap_err();
    let shown = |text: &str| error(text).to_string();
    assert!(shown("").starts_with(
        "cannot parse gate \"\": found the end at column 1, expected one of the keys max, mean, p50, "
    ));
    assert!(shown("max<10us,foo<3").contains(": found \"foo\" at column 10, expected one of the keys "));
    assert_eq!(
        shown("max 10us"),
        "cannot parse gate \"max 10us\": found \"10us\" at column 5, expected <, <=, > or >="
    );
    assert_eq!(
        shown("max<10"),
        "cannot parse gate \"max<10\": found the end at column 7, expected a unit of max (ns, us, ms, s)"
    );
    assert!(shown("max<10/s").contains("\"/s\" at column 7, expected a unit of max (ns, us, ms, s)"));
    assert!(shown("rate<10").contains("the end at column 8, expected the unit /s (rate has no other)"));
    assert!(shown("count<10us").contains("\"us\" at column 9, expected no unit (count is a plain number)"));
    assert!(shown("max<us").contains("\"us\" at column 5, expected a number such as 10 or 0.01"));
    assert!(shown("max<1.2.3us").contains("\"1.2.3\" at column 5, expected a number"));
    assert!(shown("max<-1us").contains("\"-1us\" at column 5, expected a number"));
    assert!(shown("max<1us;rate<1/s").contains("\"us;rate<1/s\" at column 6"));
    assert!(shown("max<1us rate<1/s").contains("\"rate\" at column 9, expected a comma or the end"));
    assert!(shown("max<1us,").contains("the end at column 9, expected one of the keys"));
    assert!(shown("max<1us,,").contains("\",\" at column 9, expected one of the keys"));
    for digits in [16, 400] {
        assert!(shown(&format!("max<{}us", "9".repeat(digits))).contains("expected a number"), "too large");
    }
    assert!(shown(&"max<1us,".repeat(1_000)).contains("a text of 8000 bytes at column 1"));
    let error = error("é<1us");
    assert_eq!((error.column(), error.pointer(), error.span.clone()), (1, "^".to_owned(), 0..2));
    assert_eq!(error_pointer("max<10us,foo<3"), "         ^^^");
}

fn error_pointer(text: &str) -> String {
    Gate::parse(text).unwrap_err().pointer()
}

#[test]
fn micro_signs_are_read() {
    for text in ["max<1.5µs", "max<1.5μs", "max < 1.5 us"] {
        assert_eq!(Gate::parse(text).unwrap().to_string(), "max<1.5us");
        assert!((Gate::parse(text).unwrap().clauses()[0].limit() - 1_500.0).abs() < f64::EPSILON);
    }
}

/// A limit held during a part of the time may not have held afterwards.
#[test]
fn a_part_of_the_time_shows_nothing_held() {
    let cut = |cpu: CpuStudy| CpuStudy { runtime_s: 0.003, missed_s: 609.997, ..cpu };
    let study = JitterStudy {
        missing: CpuSet::of(7),
        ..study(vec![quiet(1), cut(quiet(4)), cut(busy(5, 10))], None)
    };
    assert_eq!(
        lines("max<10us,count<=20", &study),
        [
            "CPU 1: max -, limit <10us: held (no interruption of 100 ns or longer in 610 s)",
            "CPU 4: max -, limit <10us: not shown (held for 0.003 s, but 609.997 s more were to be sampled)",
            "CPU 5: max 12.345us, limit <10us: broken",
            "CPU 7: max -, limit <10us: not shown (its sampler died)",
            "CPU 1: count 0, limit <=20: held",
            "CPU 4: count 0, limit <=20: not shown (held for 0.003 s, but 609.997 s more were to be sampled)",
            "CPU 5: count 10, limit <=20: not shown (held for 0.003 s, but 609.997 s more were to be sampled)",
            "CPU 7: count -, limit <=20: not shown (its sampler died)",
        ]
    );
    let dead = JitterStudy { missing: CpuSet::of(7), ..JitterStudy::default() };
    assert!(!Gate::parse("max<10us").unwrap().evaluate(&dead).is_held());
}

#[test]
fn the_outcome_survives_json() {
    let outcome = Gate::parse("max<10us,unexplained<5%").unwrap().evaluate(&study(vec![busy(5, 40)], None));
    let json = serde_json::to_string(&outcome).unwrap();
    assert!(json.contains("\"verdict\":\"not_shown\""), "{json}");
    assert_eq!(serde_json::from_str::<GateOutcome>(&json).unwrap(), outcome);
}

fn clause() -> impl Strategy<Value = String> {
    let keys: Vec<GateKey> = key::KEYS.iter().map(|(_, key, _)| *key).collect();
    let key = proptest::sample::select(keys);
    (key, proptest::sample::select(vec!["<", "<=", ">", ">="]), 0.0..1e9, any::<proptest::sample::Index>())
        .prop_map(|(key, comparison, number, unit)| {
            let unit = unit.get(key.units()).text();
            format!("{}{comparison}{number}{unit}", key.name())
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read(clauses in proptest::collection::vec(clause(), 1..8)) {
        let text = clauses.join(",");
        let gate = Gate::parse(&text).unwrap();
        prop_assert_eq!(gate.to_string(), text);
        prop_assert_eq!(&Gate::parse(&clauses.join(" , ")).unwrap(), &gate);
        for study in [study(vec![quiet(0), busy(1, 40)], None), study(vec![busy(1, 40)], Some(CauseShares::default()))] {
            let outcome = gate.evaluate(&study);
            prop_assert!(outcome.rows.len() >= clauses.len());
            prop_assert_eq!(outcome.is_held(), outcome.failed().count() == 0);
        }
    }

    #[test]
    fn no_text_panics(text in "(max|p99.9|rate|é|time_p50)?[<>= ,.0-9a-z/%µ-]{0,24}", any in ".{0,40}") {
        for text in [text, any] {
            if let Err(error) = Gate::parse(&text) {
                prop_assert!(error.text.get(error.span.clone()).is_some(), "{:?}", error);
                prop_assert!(!error.to_string().is_empty() && !error.pointer().is_empty());
            }
        }
    }

    #[test]
    fn no_figures_panic(runtime_s: f64, count: u64, mean: f64, share: f64, core_seconds: f64) {
        let cpu = CpuStudy { runtime_s, length_ns_mean: Some(mean), lost_share: Some(share), ..busy(1, count) };
        let shares = CauseShares { unexplained: share, not_traced: mean, ..CauseShares::default() };
        let mut study = study(vec![cpu], Some(shares));
        study.all.core_seconds = core_seconds;
        let gate = Gate::parse("max<1us,mean<1us,lost<1%,unexplained>1%,count<3,rate_high<1/s").unwrap();
        for row in gate.evaluate(&study).rows {
            prop_assert!(!row.line().is_empty());
        }
    }
}

/// The guide's 14 CPUs: six with one interruption, one with four, seven with none.
fn guide_run() -> JitterStudy {
    let counts = [1, 1, 0, 0, 4, 0, 0, 1, 1, 0, 0, 1, 0, 1];
    let cpus = (1..).zip(counts).map(|(cpu, count)| if count == 0 { quiet(cpu) } else { busy(cpu, count) });
    study(cpus.collect(), None)
}

#[test]
fn the_ready_gate_is_what_the_guide_measured() {
    let guide = Gate::parse("guide-57037").unwrap();
    assert_eq!(guide.to_string(), READY[0].clauses);
    assert_eq!(Gate::parse(&guide.to_string()).unwrap(), guide);
    let run = guide_run();
    let all = &run.all;
    assert_eq!(all.count, u64::from(GUIDE_RUN.interruption_count));
    assert!((all.count as f64 / all.core_seconds - GUIDE_RUN.rate_per_s()).abs() < 1e-9);
    let outcome = guide.evaluate(&run);
    assert!(outcome.is_held(), "{outcome:?}");
    assert_eq!(
        outcome.rows.last().unwrap().line(),
        "all CPUs: rate_all 0.00117096/s, limit <=0.001171/s: held (held, but the interval reaches \
         0.00215344/s: run longer to show it)"
    );
}

#[test]
fn the_ready_gate_breaks_on_one_more_a_shorter_run_and_a_coarser_threshold() {
    let verdict = |run: &JitterStudy| Gate::parse("guide-57037").unwrap().evaluate(run).verdict;
    let mut more = guide_run();
    more.all.count += 1;
    assert_eq!(verdict(&more), Verdict::Broken);
    let mut coarse = guide_run();
    coarse.threshold_ns = 250;
    assert_eq!(verdict(&coarse), Verdict::Broken);
    let mut short = guide_run();
    short.cpus[3].runtime_s = 60.0;
    assert_eq!(verdict(&short), Verdict::Broken);
    let mut died = guide_run();
    died.missing = CpuSet::of(15);
    assert_eq!(verdict(&died), Verdict::NotShown);
    assert_eq!(Gate::parse("guide-57037,max<10us").unwrap().clauses().len(), 4);
    assert!(Gate::parse("guide-57038").is_err());
}
