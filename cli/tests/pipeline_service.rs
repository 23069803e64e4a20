//! `lowlat pipeline run` as a service: without an end, with strategies that it supervises, notifying systemd, joined
//! from containers and by other users.

use crate::common::{binary, running::Running};
use lowlat_node::{
    Node, Strategies, Wait,
    strategy::{self, OnEachRecord},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    env,
    fs::{self, Permissions},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        net::UnixDatagram,
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Guards against a hang; not an expected duration.
const PATIENCE: Duration = Duration::from_secs(120);
/// Makes this test program a strategy.
const STRATEGY: &str = "LOWLAT_TEST_STRATEGY";
const CHILD: [&str; 3] = ["pipeline_service::child", "--exact", "--nocapture"];

/// Does nothing as a test; with the name of a strategy in the environment it is that strategy, of instrument 0.
#[test]
fn child() {
    let Ok(name) = env::var(STRATEGY) else { return };
    assert!(env::var_os("NOTIFY_SOCKET").is_none(), "only the master speaks to systemd");
    let socket = env::var("LOWLAT_MASTER").unwrap();
    let join = strategy::join(&name, "test", Strategies::Free, &[0], 1 << 16, Wait::Parked);
    let node = Node::join(Path::new(&socket), &join).unwrap_or_else(|error| panic!("{error}"));
    let number = node.strategies()[0];
    strategy::run(node, number, &mut OnEachRecord { quotes_per_order: 1, ..OnEachRecord::of(0) }).unwrap();
}

/// A run named `desk`, whose run folder is in a directory of the test.
struct Desk {
    runs: TempDir,
    running: Running,
    /// Words in front of commands about it.
    asked_by: Vec<&'static str>,
}

impl Desk {
    /// Starts it with a command that runs the binary.
    fn start(command: Command, runs: TempDir, arguments: &[&str]) -> Self {
        Self::start_asked_by(&["env"], command, runs, arguments)
    }

    fn start_asked_by(
        asked_by: &[&'static str],
        mut command: Command,
        runs: TempDir,
        arguments: &[&str],
    ) -> Self {
        command.args(["pipeline", "run", "--name", "desk", "--rate", "50", "--force", "--json"]);
        command.args(arguments).env("XDG_RUNTIME_DIR", runs.path()).env("NO_COLOR", "1");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let desk = Self { runs, running: Running(Some(child)), asked_by: asked_by.to_vec() };
        desk.node("td", "the run starts", |node| node["standing"] == "running");
        desk
    }

    fn folder(&self) -> PathBuf {
        self.runs.path().join("lowlat/desk")
    }

    fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(self.asked_by[0]);
        command.args(&self.asked_by[1..]).arg(binary()).arg("pipeline").args(words);
        command.arg("--run").arg(self.folder()).env("NO_COLOR", "1").output().unwrap()
    }

    /// Waits until a node of its list meets the condition.
    fn node(&self, name: &str, what: &str, is_wanted: fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let listed = self.ask(&["ps", "--json"]);
            let nodes = serde_json::from_slice::<Value>(&listed.stdout).unwrap_or_default();
            let nodes = nodes["nodes"].as_array().cloned().unwrap_or_default();
            if let Some(node) = nodes.iter().find(|node| node["name"] == name && is_wanted(node)) {
                return node.clone();
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {listed:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for its end. Returns its exit code and its document.
    fn end(mut self) -> (Option<i32>, Value) {
        let output = self.running.0.take().unwrap().wait_with_output().unwrap();
        let json =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), json)
    }
}

fn lowlat() -> Command {
    Command::new(binary())
}

/// A command of util-linux in front of another one; `None` if it does not work here.
fn wrapped(test: &str, words: &[&str]) -> Option<Command> {
    let wrapper = || {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    };
    if wrapper().arg("true").output().is_ok_and(|output| output.status.success()) {
        return Some(wrapper());
    }
    eprintln!("skipped: {test}: {} is not permitted or missing", words.join(" "));
    None
}

/// The exit code that the findings of a document call for.
fn code_of(document: &Value) -> i32 {
    let is_sound =
        ["findings", "failed"].iter().all(|list| document[list].as_array().is_none_or(Vec::is_empty));
    i32::from(!is_sound)
}

#[test]
fn a_run_without_a_duration_ends_when_it_is_stopped_and_notifies_systemd() {
    let runs = TempDir::new().unwrap();
    let path = runs.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut bytes = [0; 1024];
        let length = manager.recv(&mut bytes).expect("systemd is notified");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let until = |word: &str| loop {
        let text = next();
        assert!(text.contains("WATCHDOG=1") && text.contains("STATUS="), "{text}");
        if text.lines().any(|line| line == word) {
            return text;
        }
        assert!(!text.contains("READY=1") && !text.contains("STOPPING=1"), "{word}: {text}");
    };
    let mut command = lowlat();
    command.env("NOTIFY_SOCKET", &path);
    let desk = Desk::start(command, runs, &["--strategies", "2"]);
    let ready = until("READY=1");
    assert!(ready.contains("STATUS=publishing: "), "{ready}");
    let alive = [next(), next()];
    assert!(alive.iter().all(|text| text.starts_with("WATCHDOG=1\nSTATUS=publishing")), "{alive:?}");
    kill_process(Pid::from_child(desk.running.0.as_ref().unwrap()), Signal::TERM).unwrap();
    let stopping = until("STOPPING=1");
    assert!(stopping.contains("STATUS=ending: "), "{stopping}");
    let (code, document) = desk.end();
    assert_eq!(code, Some(code_of(&document)), "a request to stop is its normal end: {document}");
    assert_eq!((&document["is_interrupted"], &document["is_cut_short"]), (&false.into(), &false.into()));
    assert_eq!(document["ticks_scheduled"], document["ticks_published"]);
    assert_eq!(document["orders"], document["answers"]);
    let [duration_s, measured_s] = ["/parameters/duration_s", "/measured_s"]
        .map(|path| document.pointer(path).unwrap().as_f64().unwrap());
    assert!(duration_s > 1.0 && duration_s < measured_s + 1.0, "the time that it had: {document}");
}

#[test]
fn strategies_of_the_user_are_supervised_each_alone() {
    let runs = TempDir::new().unwrap();
    let config = runs.path().join("desk.toml");
    let own = env::current_exe().unwrap();
    let steady = format!("{:?}", [&[own.to_str().unwrap()][..], &CHILD].concat());
    let text = format!(
        "[[strategy]]\nname = \"steady\"\ncommand = {steady}\nenvironment = {{ {STRATEGY} = \"steady\" }}\n\
         [[strategy]]\nname = \"broken\"\ncommand = [\"sh\", \"-c\", \"echo no $LOWLAT_NAME at $0 >&2; exit 7\", \"{{master}}\"]\nrestarts_max = 1\n\
         [[strategy]]\nname = \"short\"\ncommand = [\"true\"]\n"
    );
    fs::write(&config, text).unwrap();
    let desk = Desk::start(lowlat(), runs, &["--config", config.to_str().unwrap(), "--instruments", "3"]);
    let broken = desk.node("broken", "it is given up", |node| node["standing"] == "given up");
    assert_eq!((&broken["is_there"], &broken["pid"]), (&false.into(), &0.into()));
    let listed = desk.ask(&["ps"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("given up"), "{listed:?}");
    let steady = desk.node("steady", "it trades", |node| node["published"].as_u64() > Some(3));
    assert_eq!(steady["epoch"], 1, "the others do not affect it");
    // One that dies is restarted under its name.
    let pid = Pid::from_raw(i32::try_from(steady["pid"].as_u64().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    desk.node("steady", "it is restarted", |node| node["epoch"] == 2 && node["standing"] == "running");
    let stopped = desk.ask(&["stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    let (code, document) = desk.end();
    assert_eq!((code, &document["failed"]), (Some(1), &serde_json::json!(["broken"])), "{document}");
    assert_eq!((&document["parameters"]["strategies"], &document["restarts"]), (&0.into(), &0.into()));
    let warnings = document["warnings"].to_string();
    for said in [
        "broken ended (exit status: 7); it is restarted",
        "broken ended: it was restarted 1 times in a row; giving up; its last output:\\n  no broken at /",
        "steady ended (signal: 9 (SIGKILL)); it is restarted",
        "short ended (exit status: 0)",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
    assert!(!warnings.contains("lowlat pipeline stop"), "{warnings}");
}

/// A container, as far as a run is concerned: another PID namespace with another /proc.
const CONTAINER: [&str; 6] = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--"];

#[test]
fn a_strategy_in_a_container_joins_and_its_death_is_noticed() {
    let test = "a_strategy_in_a_container_joins_and_its_death_is_noticed";
    let Some(mut container) = wrapped(test, &CONTAINER) else { return };
    let desk = Desk::start(lowlat(), TempDir::new().unwrap(), &["--strategies", "1"]);
    container.arg(env::current_exe().unwrap()).args(CHILD).stdout(Stdio::null());
    container.env(STRATEGY, "inside").env("LOWLAT_MASTER", desk.folder().join("master.sock"));
    let mut inside = container.spawn().unwrap();
    let node = desk.node("inside", "it trades", |node| node["published"].as_u64() > Some(3));
    let pid = i32::try_from(node["pid"].as_u64().unwrap()).unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let ids = status.lines().find(|line| line.starts_with("NSpid:")).unwrap();
    assert!(ids.ends_with("\t1"), "listed with its id outside; inside it is 1: {ids}");
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    desk.node("inside", "its death is noticed", |node| node["standing"] == "dead");
    inside.wait().unwrap();
    desk.node("s0", "the others go on", |node| node["standing"] == "running");
}

#[test]
fn a_node_that_the_master_cannot_see_is_refused_by_name() {
    let test = "a_node_that_the_master_cannot_see_is_refused_by_name";
    let Some(mut container) = wrapped(test, &CONTAINER) else { return };
    container.arg(binary());
    let runs = TempDir::new().unwrap();
    container.args(["pipeline", "run", "--name", "desk", "--strategies", "1", "--force"]);
    container.env("XDG_RUNTIME_DIR", runs.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let inside = Running(Some(container.spawn().unwrap()));
    let folder = runs.path().join("lowlat/desk");
    let begun = Instant::now();
    while !folder.join("master.sock").exists() {
        assert!(begun.elapsed() < PATIENCE, "the run does not start");
        thread::sleep(Duration::from_millis(20));
    }
    let output = lowlat().args(["pipeline", "ps", "--run"]).arg(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("invisible to the master") && said.contains("hint: start the master on the host"),
        "{said}"
    );
    // The process in the container is the first of its namespace: all end with it.
    let children =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", inside.0.as_ref().unwrap().id()));
    let child = children.unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(child).unwrap(), Signal::TERM).unwrap();
}

/// Users and a group that no host and no other test uses.
const OWNER: &str = "39101";
const MEMBER: &str = "39102";
const STRANGER: &str = "39103";
const GROUP: &str = "39100";

/// Words in front of a command that run it as a user, in the group or not.
fn as_user(user: &'static str, is_member: bool) -> [&'static str; 8] {
    ["setpriv", "--reuid", user, "--regid", user, "--groups", if is_member { GROUP } else { user }, "--"]
}

#[test]
fn a_group_may_join_by_choice_of_both_sides() {
    let test = "a_group_may_join_by_choice_of_both_sides";
    let Some(mut owner) = wrapped(test, &as_user(OWNER, true)) else { return };
    let runs = TempDir::new().unwrap();
    fs::set_permissions(runs.path(), Permissions::from_mode(0o755)).unwrap();
    let user = Some(OWNER.parse().unwrap());
    chown(runs.path(), user, user).unwrap();
    owner.arg(binary());
    let words = ["--strategies", "1", "--unix-group", GROUP];
    let desk = Desk::start_asked_by(&as_user(OWNER, true), owner, runs, &words);
    let mode = |path: PathBuf| {
        let known = fs::metadata(path).unwrap();
        (known.permissions().mode() & 0o777, known.gid().to_string())
    };
    let (folder, group) = (desk.folder(), GROUP.to_owned());
    assert_eq!(mode(folder.clone()), (0o750, group.clone()));
    assert_eq!(mode(folder.join("master.sock")), (0o660, group));
    assert_eq!([folder.join("log"), folder.join("lock")].map(|path| mode(path).0), [0o700, 0o600]);
    let member = |words: &[&str], group: Option<&str>| {
        let mut command = wrapped(test, &as_user(MEMBER, true)).unwrap();
        command.args(words).arg("--run").arg(&folder).envs(group.map(|group| ("LOWLAT_GROUP", group)));
        command.output().unwrap()
    };
    let lowlat = binary().display().to_string();
    let refused = |output: Output, said: &str| {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.contains(said), "{said}: {words}");
    };
    let list = [lowlat.as_str(), "pipeline", "ps"];
    refused(member(&list, None), "it belongs to user 39101");
    refused(member(&list, Some("39103")), "it belongs to user 39101");
    refused(member(&list, Some("no-such-group")), "no group \"no-such-group\"");
    assert!(member(&list, Some(GROUP)).status.success(), "a member may look");
    refused(member(&[lowlat.as_str(), "pipeline", "stop"], Some(GROUP)), "only its user may do that");
    let strategy = |user: [&str; 8]| {
        let mut command = wrapped(test, &user).unwrap();
        command.arg(env::current_exe().unwrap()).args(CHILD).stdout(Stdio::null()).env("LOWLAT_GROUP", GROUP);
        command.env(STRATEGY, "guest").env("LOWLAT_MASTER", folder.join("master.sock"));
        command
    };
    refused(strategy(as_user(STRANGER, false)).output().unwrap(), "Permission denied");
    let mut inside = strategy(as_user(MEMBER, true)).spawn().unwrap();
    desk.node("guest", "it trades", |node| node["published"].as_u64() > Some(3));
    assert!(desk.ask(&["stop"]).status.success());
    let (code, document) = desk.end();
    assert_eq!(code, Some(code_of(&document)), "{document}");
    assert!(inside.wait().unwrap().success());
}
