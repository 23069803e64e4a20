//! TuneD: profile, rollback, variables, and the boot parameters that reach the boot loader.

use crate::{testing::Bench, testing::GUIDE_LINE, testing::junk};
use lowlat_host::{Profile, Reading};
use lowlat_settings::Verdict;

const BOOTCMDLINE: &str = "/etc/tuned/bootcmdline";
const VARIABLES: &str = "/etc/tuned/cpu-partitioning-variables.conf";

fn guide() -> Bench {
    Bench::guide()
}

fn with_profile(bench: Bench, profile: Reading<String>) -> Bench {
    bench.with(|bench| bench.host.services.tuned.profile = profile)
}

fn known(text: &str) -> Reading<String> {
    Reading::Known(text.to_owned())
}

#[test]
fn a_profile_for_throughput_or_power_saving_is_wrong() {
    let id = "service.tuned.profile";
    for (text, verdict) in [
        ("cpu-partitioning", Verdict::Good),
        ("", Verdict::Good),
        ("my-own", Verdict::Good),
        ("throughput-performance", Verdict::Wrong),
        ("my-own powersave", Verdict::Wrong),
    ] {
        assert_eq!(with_profile(Bench::trading(), known(text)).verdict(id), verdict, "{text}");
    }
    with_profile(Bench::trading(), Reading::Absent).says(id, Verdict::Good, &["not installed"]);
    with_profile(Bench::trading(), Reading::Denied).says(id, Verdict::Unknown, &["root"]);
    with_profile(Bench::trading(), junk("p")).says(id, Verdict::Unknown, &["junk"]);
    with_profile(guide(), known("HPELowLatency")).says(id, Verdict::Good, &[]);
    with_profile(guide(), known("balanced")).says(id, Verdict::Wrong, &["balanced"]);
    with_profile(guide(), Reading::Absent).says(id, Verdict::Wrong, &["not installed"]);
}

#[test]
fn rollback_matters_only_if_a_profile_is_applied() {
    let id = "service.tuned.rollback";
    let rollback = |reading| {
        with_profile(Bench::trading(), known("cpu-partitioning"))
            .with(|bench| bench.host.services.tuned.rollback = reading)
    };
    rollback(known("not_on_exit")).says(id, Verdict::Good, &[]);
    rollback(known("auto")).says(id, Verdict::Wrong, &["auto"]);
    rollback(Reading::Absent).says(id, Verdict::Wrong, &["means auto"]);
    rollback(Reading::Denied).says(id, Verdict::Unknown, &["root"]);
    with_profile(Bench::trading(), known("")).says(id, Verdict::NotApplicable, &[]);
}

#[test]
fn the_include_of_the_guides_profile_is_read() {
    let id = "service.tuned.include";
    let conf = |path: &str, text: &str| guide().knob(path, text);
    let path = "/etc/tuned/HPELowLatency/tuned.conf";
    conf(path, "[main]\n#include=network-latency\ninclude=cpu-partitioning\n").says(id, Verdict::Good, &[]);
    conf("/etc/tuned/profiles/HPELowLatency/tuned.conf", "include = cpu-partitioning").says(
        id,
        Verdict::Good,
        &[],
    );
    conf(path, "[main]\ninclude=balanced").says(id, Verdict::Wrong, &["include=balanced"]);
    conf(path, "[main]").says(id, Verdict::Wrong, &["no include="]);
    conf("/etc/tuned/other/tuned.conf", "include=cpu-partitioning").says(
        id,
        Verdict::Wrong,
        &["does not exist"],
    );
    guide().reading(path, Reading::Denied).says(id, Verdict::Unknown, &["root"]);
}

#[test]
fn variables_are_compared_as_sets_and_expressions_ignored() {
    let id = "service.tuned.isolated_cores";
    let variables = |text: &str| guide().knob(VARIABLES, text);
    variables("# isolated_cores=2\nisolated_cores=1,2,3,4,5,6,7,9-15").says(id, Verdict::Good, &[]);
    variables("isolated_cores=1-15").says(id, Verdict::Wrong, &["1-15"]);
    variables("isolated_cores=one").says(id, Verdict::Wrong, &["one"]);
    variables("isolated_cores=${f:calc_isolated_cores:1}").says(
        id,
        Verdict::Unknown,
        &["expression", "calc_"],
    );
    variables("").says(id, Verdict::Wrong, &["not set"]);
    guide().reading(VARIABLES, Reading::Denied).says(id, Verdict::Unknown, &["root"]);
    guide().says(id, Verdict::Wrong, &["does not exist"]);
    variables("housekeeping_cpus=0,8").says("service.tuned.housekeeping_cpus", Verdict::Good, &[]);
    variables("no_balance_cores=1-7,9-15").says("service.tuned.no_balance_cores", Verdict::Good, &[]);
}

#[test]
fn parameters_requested_by_tuned_must_reach_the_kernel() {
    let id = "service.tuned.bootloader";
    let asks = |text: &str| Bench::trading().line("quiet nohz_full=1-7,9-15 b=2M").knob(BOOTCMDLINE, text);
    asks("TUNED_BOOT_CMDLINE=\"quiet nohz_full=1,2,3,4,5,6,7,9-15 b=2MB\"").says(
        id,
        Verdict::Good,
        &["all 3"],
    );
    asks("TUNED_BOOT_CMDLINE=\"quiet skew_tick=1\"").says(
        id,
        Verdict::Ineffective,
        &["1 of 2", "skew_tick=1"],
    );
    asks("TUNED_BOOT_CMDLINE=\"\"").says(id, Verdict::NotApplicable, &["no boot parameters"]);
    asks("# nothing").says(id, Verdict::NotApplicable, &[]);
    Bench::trading().line("quiet").says(id, Verdict::NotApplicable, &[]);
    Bench::trading().line("quiet").reading(BOOTCMDLINE, Reading::Denied).says(
        id,
        Verdict::Unknown,
        &["root"],
    );
}

#[test]
fn a_lost_first_word_is_reported() {
    let id = "boot.first_token";
    let asks = |text: &str| {
        Bench::of(Profile::Guide57037)
            .line(GUIDE_LINE)
            .knob(BOOTCMDLINE, &format!("TUNED_BOOT_CMDLINE=\"{text}\""))
    };
    asks("quiet selinux=0").says(id, Verdict::Good, &["quiet"]);
    asks("skew_tick=1 selinux=0").says(id, Verdict::Ineffective, &["skew_tick=1", "lost on the way"]);
    asks("skew_tick=1 a=1").says(id, Verdict::NotApplicable, &["none of TuneD's"]);
    asks("").says(id, Verdict::NotApplicable, &[]);
}

#[test]
fn readiness_wants_tuned_stopped_with_its_profile() {
    let id = "readiness.tuned";
    let bench =
        |state: &str, profile: &str| with_profile(guide().unit("tuned.service", state), known(profile));
    bench("inactive", "HPELowLatency").says(id, Verdict::Good, &["not running"]);
    bench("active", "HPELowLatency").says(id, Verdict::Wrong, &["running"]);
    bench("inactive", "balanced").says(id, Verdict::Wrong, &["balanced"]);
    with_profile(guide(), known("HPELowLatency")).says(id, Verdict::Unknown, &[]);
    guide().says(id, Verdict::Wrong, &["no preset profile"]);
}
