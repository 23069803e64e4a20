//! Services: stopped, running, started by sockets, and those that must run.

use crate::{testing::Bench, testing::junk};
use lowlat_host::{Profile, Reading, snapshot::ServiceSource};
use lowlat_settings::Verdict;

fn guide() -> Bench {
    Bench::of(Profile::Guide57037)
}

#[test]
fn an_unwanted_service_gets_each_verdict() {
    let id = "service.crond";
    guide().unit("crond.service", "inactive").says(id, Verdict::Good, &["stopped"]);
    guide().unit("cron.service", "failed").says(id, Verdict::Good, &[]);
    guide().unit("cron.service", "active").says(id, Verdict::Wrong, &["running: cron.service"]);
    guide().unit("cron.service", "activating").says(id, Verdict::Wrong, &[]);
    guide().unit("sshd.service", "active").says(id, Verdict::NotApplicable, &["no such unit"]);
    guide().unit_reading("crond.service", Reading::Denied, "enabled").says(id, Verdict::Unknown, &["root"]);
    guide().unit_reading("crond.service", Reading::Absent, "enabled").says(id, Verdict::Unknown, &[]);
    guide().unit_reading("crond.service", junk("bus"), "enabled").says(id, Verdict::Unknown, &["junk"]);
    let enabled = guide().unit_reading("crond.service", Reading::Known("inactive".into()), "enabled");
    enabled.says(id, Verdict::Good, &["starts again at the next boot"]);
    guide().says(id, Verdict::Unknown, &["no service manager"]);
    let none = guide().unit("crond.service", "active").with(|b| b.host.services.source = ServiceSource::None);
    none.says(id, Verdict::Unknown, &["no service manager"]);
    Bench::trading().unit("crond.service", "active").says(id, Verdict::NotApplicable, &["does not set it"]);
}

#[test]
fn a_listening_socket_makes_stopping_ineffective() {
    let id = "service.systemd-journald";
    let stopped = || guide().unit("systemd-journald.service", "inactive");
    stopped().unit("systemd-journald.socket", "inactive").says(id, Verdict::Good, &[]);
    stopped().unit("systemd-journald-dev-log.socket", "active").says(
        id,
        Verdict::Ineffective,
        &["systemd-journald-dev-log.socket", "starts the service again"],
    );
    guide().unit("rpcbind.socket", "active").says(
        "service.rpcbind.socket",
        Verdict::Wrong,
        &["rpcbind.socket"],
    );
}

#[test]
fn one_clock_service_must_run() {
    let id = "service.clock_discipline";
    let bench = || Bench::trading().unit("sshd.service", "active");
    bench().unit("chronyd.service", "active").says(id, Verdict::Good, &["chronyd.service"]);
    bench().unit("ptp4l@eth0.service", "active").unit("phc2sys.service", "active").says(
        id,
        Verdict::Good,
        &["ptp4l"],
    );
    bench().unit("chronyd.service", "active").unit("systemd-timesyncd.service", "active").says(
        id,
        Verdict::Conflicting,
        &["systemd-timesyncd", "stop all but one"],
    );
    bench().unit("chronyd.service", "inactive").says(id, Verdict::Wrong, &["none is running"]);
    bench().says(id, Verdict::Wrong, &["none is running"]);
    bench().unit_reading("chronyd.service", Reading::Denied, "enabled").says(id, Verdict::Unknown, &[]);
    Bench::trading().says(id, Verdict::Unknown, &["no service manager"]);
}

#[test]
fn netfilter_modules_are_matched_by_whole_names() {
    let id = "service.netfilter";
    let read = |modules| guide().with(|bench| bench.host.kernel.modules = modules);
    let loaded = |names: &[&str]| read(Reading::Known(names.iter().map(ToString::to_string).collect()));
    loaded(&["sfc", "nf_conntrack_helper_x"]).says(id, Verdict::Good, &[]);
    loaded(&["nf_conntrack", "sfc"]).says(id, Verdict::Wrong, &["loaded: nf_conntrack"]);
    loaded(&[]).says(id, Verdict::Good, &[]);
    read(Reading::Absent).says(id, Verdict::Unknown, &[]);
    read(Reading::Denied).says(id, Verdict::Unknown, &["root"]);
}

#[test]
fn the_one_time_service_is_enabled_or_not() {
    let id = "service.one_time";
    let unit = |enablement: &str| {
        guide().unit_reading("one-time.service", Reading::Known("inactive".into()), enablement)
    };
    unit("enabled").says(id, Verdict::Good, &[]);
    unit("disabled").says(id, Verdict::Wrong, &["disabled"]);
    guide().unit("sshd.service", "active").says(id, Verdict::Wrong, &["no such unit"]);
    guide().says(id, Verdict::Unknown, &[]);
}
