use super::*;
use crate::testing::TestTree;
use std::{
    os::unix::net::{UnixListener, UnixStream},
    sync::mpsc,
    thread,
};
use zbus::wire::OwnedObjectPath;

/// systemd's manager, as far as these tests need it.
struct Manager {
    lists_files: bool,
}

#[zbus::interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    #[zbus(name = "ListUnits")]
    #[allow(clippy::unused_self, reason = "the interface macro calls methods on the object")]
    fn list_units(&self) -> Vec<UnitRow> {
        let object = || OwnedObjectPath::try_from("/org/freedesktop/systemd1/unit/x").unwrap();
        let row = |name: &str, load: &str, active: &str, sub: &str| -> UnitRow {
            let text = str::to_owned;
            let nothing = String::new();
            let (load, active, sub) = (text(load), text(active), text(sub));
            (text(name), nothing.clone(), load, active, sub, nothing.clone(), object(), 0, nothing, object())
        };
        vec![
            row("chrony.service", "loaded", "active", "running"),
            row("getty@tty1.service", "loaded", "active", "running"),
            row("dev-vda.device", "loaded", "active", "plugged"),
            row("ghost.service", "not-found", "inactive", "dead"),
        ]
    }

    #[zbus(name = "ListUnitFiles")]
    fn list_unit_files(&self) -> zbus::fdo::Result<Vec<(String, String)>> {
        if !self.lists_files {
            return Err(zbus::fdo::Error::NoReply("still reading".into()));
        }
        let file = |name: &str, state: &str| (format!("/lib/systemd/system/{name}"), state.to_owned());
        Ok(vec![
            file("chrony.service", "enabled"),
            file("chronyd.service", "alias"),
            file("getty@.service", "disabled"),
            file("irqbalance.service", "disabled"),
        ])
    }
}

/// Returns what the reader receives from the fake manager over a socket pair.
fn heard(lists_files: bool) -> UnitListing {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (done, is_done) = mpsc::channel::<()>();
    let server = thread::spawn(move || {
        let guid = zbus::Guid::generate();
        let builder = Builder::unix_stream(theirs).server(guid).p2p();
        let builder = builder.serve_at("/org/freedesktop/systemd1", Manager { lists_files });
        let connection = zbus::block_on(builder.build()).unwrap();
        // The connection answers on a separate thread until the reader is done.
        let _ = is_done.recv();
        drop(connection);
    });
    let listing = ask(Builder::unix_stream(ours).p2p(), Duration::from_secs(60)).into_known();
    drop(done);
    server.join().unwrap();
    listing.unwrap()
}

#[test]
fn systemd_is_received_over_a_socket() {
    let listing = heard(true);
    let loaded: Vec<&str> = listing.loaded.iter().map(|unit| unit.name.as_str()).collect();
    assert_eq!(loaded, ["chrony.service", "getty@tty1.service", "ghost.service"]);
    assert_eq!(listing.files.map(|files| files.len()), Some(4));
}

#[test]
fn states_are_kept_where_the_files_are_not_listed_in_time() {
    let listing = heard(false);
    assert_eq!((listing.loaded.len(), &listing.files), (3, &None));
    let installable = "[Unit]\n[Install]\nWantedBy=multi-user.target\n";
    let tree = TestTree::new()
        .file("/.lowlat/interface/systemd-units", serde_json::to_vec(&listing).unwrap())
        .file("/lib/systemd/system/chrony.service", installable)
        .link("/etc/systemd/system/chronyd.service", "/lib/systemd/system/chrony.service")
        .link(
            "/etc/systemd/system/multi-user.target.wants/chrony.service",
            "/lib/systemd/system/chrony.service",
        )
        .file("/lib/systemd/system/irqbalance.service", installable);
    let expected = [
        "chrony.service active running enabled",
        "chronyd.service active running enabled",
        "getty@tty1.service active running absent",
        "irqbalance.service inactive dead disabled",
    ];
    assert_eq!(shown(&units(&tree.root()).into_known().unwrap()), expected);
}

fn shown(units: &BTreeMap<String, Service>) -> Vec<String> {
    units.iter().map(|(name, s)| format!("{name} {} {} {}", s.active, s.sub, s.enablement)).collect()
}

#[test]
fn a_capture_returns_what_was_heard_with_aliases() {
    let file = |name: &str, state: &str, alias_of: Option<&str>| ListedUnitFile {
        path: format!("/lib/systemd/system/{name}"),
        state: state.into(),
        alias_of: alias_of.map(str::to_owned),
    };
    let files = vec![
        file("chrony.service", "enabled", None),
        file("chronyd.service", "alias", Some("chrony.service")),
        file("irqbalance.service", "masked", None),
        file("getty@.service", "disabled", None),
    ];
    let loaded = |name: &str, load: &str, active: &str| LoadedUnit {
        name: name.into(),
        load: load.into(),
        active: active.into(),
        sub: "running".into(),
    };
    let listing = UnitListing {
        loaded: vec![
            loaded("chrony.service", "loaded", "active"),
            loaded("getty@tty1.service", "loaded", "active"),
            loaded("ghost.service", "not-found", "inactive"),
        ],
        files: Some(files),
    };
    let tree =
        TestTree::new().file("/.lowlat/interface/systemd-units", serde_json::to_vec(&listing).unwrap());
    let expected = [
        "chrony.service active running enabled",
        "chronyd.service active running enabled",
        "getty@tty1.service active running disabled",
        "irqbalance.service inactive dead masked",
    ];
    assert_eq!(shown(&units(&tree.root()).into_known().unwrap()), expected);
}

#[test]
fn links_to_other_units_are_aliases() {
    let tree = TestTree::new()
        .file("/lib/systemd/system/chrony.service", "")
        .link("/etc/systemd/system/chronyd.service", "/lib/systemd/system/chrony.service")
        .link("/etc/systemd/system/masked.service", "/dev/null");
    let file = |path: &str| ListedUnitFile { path: path.into(), state: "enabled".into(), alias_of: None };
    let paths = [
        "/lib/systemd/system/chrony.service",
        "/etc/systemd/system/chronyd.service",
        "/etc/systemd/system/masked.service",
    ];
    let listing =
        UnitListing { loaded: Vec::new(), files: Some(paths.iter().map(|path| file(path)).collect()) };
    let aliases: Vec<Option<String>> =
        with_aliases(&tree.root(), listing).files.into_iter().flatten().map(|file| file.alias_of).collect();
    assert_eq!(aliases, [None, Some("chrony.service".into()), None]);
}

#[test]
fn a_silent_bus_times_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bus");
    let _listener = UnixListener::bind(&path).unwrap();
    let builder = Builder::unix_stream(UnixStream::connect(&path).unwrap());
    assert!(matches!(ask(builder, Duration::from_millis(50)), Reading::Unparsable(_)));
}

#[test]
fn no_bus_is_absent() {
    let answer = ask(Builder::address("unix:path=/nonexistent/bus"), Duration::from_secs(60));
    assert_eq!(answer, Reading::Absent);
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100), name in "\\PC{0,20}") {
        let tree = TestTree::new().file("/.lowlat/interface/systemd-units", &bytes);
        let _ = units(&tree.root());
        let file = ListedUnitFile { path: name.clone(), state: String::new(), alias_of: Some(name.clone()) };
        let loaded = LoadedUnit { name, load: String::new(), active: String::new(), sub: String::new() };
        let loaded = [loaded];
        let _ = with_states(listed(&loaded, &[file]), &loaded);
    }
}
