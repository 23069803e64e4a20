//! Changes and restores on controllers that follow their registries, as HPE's and Dell's do.

#[path = "../../../redfish/tests/service/firmware.rs"]
mod firmware;

use super::*;
pub use firmware::{Firmware, Maker};
use serde_json::{Map, json};

/// A server whose controller follows its registry.
#[derive(Clone)]
pub struct Simulated {
    firmware: Firmware,
    system: Value,
    pub active: Map<String, Value>,
}

impl Simulated {
    pub fn of(maker: Maker, system: Value, registry: Value, active: &Value) -> Self {
        let active = active.as_object().unwrap().clone();
        Self { firmware: Firmware::new(maker, registry), system, active }
    }

    /// The server of the HPE fixtures with these settings.
    pub fn hpe(active: &Attributes) -> Self {
        let json = |name: &str| serde_json::from_slice::<Value>(&fixture(name)).unwrap();
        let system = json!({"@odata.type": "#ComputerSystem.v1_4_1.ComputerSystem", "Manufacturer": "HPE"});
        Self::of(Maker::Hpe, system, json("hpe-ilo5-registry.json"), &json!(active))
    }

    /// The Dell of the fixture, started with a change of its settings.
    fn dell(change: &Value) -> Self {
        let all: Value = serde_json::from_slice(&fixture("dell-idrac.json")).unwrap();
        let system = all["/redfish/v1/systems/1/"].clone();
        let active = &all["/redfish/v1/systems/1/bios/"]["Attributes"];
        let mut server = Self::of(Maker::Dell, system, all["registry"].clone(), active);
        server.start(change);
        server
    }

    /// Somebody changes settings in the setup program, which keeps no order.
    fn start(&mut self, change: &Value) {
        self.active = self.firmware.start(&self.active, change.as_object().unwrap());
    }

    pub fn facts(&self) -> BiosFacts {
        let bios = json!({"@odata.id": "/redfish/v1/systems/1/bios", "Attributes": self.active});
        let settings = json!({"@odata.id": "/redfish/v1/systems/1/bios/settings", "Attributes": self.active});
        let mut reader = BiosReader::default();
        for document in [&self.system, &bios, &settings, &self.firmware.registry(&self.active)] {
            reader.add("server.json", document.to_string().as_bytes()).unwrap();
        }
        reader.finish().unwrap()
    }

    /// Sends a request, which must change each attribute that it names, and restarts the server.
    pub fn send(&mut self, request: &Request) {
        let change = body(request).as_object().unwrap();
        let refused = self.firmware.refused(&self.active, &self.active, change);
        assert!(refused.is_empty(), "{refused:?} of {}", request.body);
        let before = self.active.clone();
        self.active = self.firmware.start(&self.active, change);
        for effect in &request.follows {
            assert_eq!(self.active[&effect.attribute], effect.after, "{effect:?} of {}", request.body);
        }
        let is_predicted = |name: &String| {
            change.contains_key(name) || request.follows.iter().any(|effect| effect.attribute == *name)
        };
        for name in self.active.keys().filter(|name| self.active[*name] != before[*name]) {
            assert!(is_predicted(name), "{name} changes unannounced with {}", request.body);
        }
    }

    /// Restores saved settings, one request per restart. Returns what the last answer says is not restored.
    pub fn restore(&mut self, saved: &[u8]) -> BiosChange {
        for _ in 0..8 {
            let facts = self.facts();
            let change = BiosChange::restoring(&facts, "before.json", saved).unwrap();
            let Some(request) = &change.request else { return change };
            for (name, value) in body(request).as_object().unwrap() {
                assert_ne!(self.active[name], *value, "{name} is sent though it does not differ");
            }
            self.send(request);
        }
        panic!("the restore does not end: {:?}", self.active);
    }
}

fn export(server: &Simulated) -> BiosExport {
    let risks: Vec<String> = table::rows().map(|row| row.id.to_owned()).collect();
    BiosExport::of(&server.facts(), Profile::Trading, &risks)
}

fn saved(server: &Simulated) -> Vec<u8> {
    serde_json::to_vec(&export(server)).unwrap()
}

#[test]
fn a_dell_is_changed_and_restored_from_every_profile_and_every_step() {
    let profiles = [
        "PerfPerWattOptimizedDapc",
        "PerfPerWattOptimizedOs",
        "PerfOptimized",
        "DenseCfgOptimized",
        "Custom",
    ];
    for profile in profiles {
        let first = Simulated::dell(&json!({"SysProfile": profile, "MemRefreshRate": "2x"}));
        let saved = saved(&first);
        let steps = export(&first).steps;
        // What PerfOptimized forces is as wanted.
        let is_short = ["Custom", "PerfOptimized"].contains(&profile);
        assert_eq!(steps.len(), if is_short { 1 } else { 2 }, "{profile}");
        let mut server = first.clone();
        for step in &steps {
            server.send(step);
            let mut back = server.clone();
            let end = back.restore(&saved);
            assert_eq!((end.left_out, back.active), (Vec::new(), first.active.clone()), "{profile}");
        }
        let audit = BiosAudit::of(&server.facts(), Profile::Trading);
        let wrong: Vec<&BiosFinding> =
            audit.findings.iter().filter(|finding| finding.verdict.is_difference()).collect();
        assert!(wrong.is_empty(), "{profile}: {wrong:#?}");
    }
}

#[test]
fn a_profile_chosen_by_hand_is_undone_with_all_that_it_forces() {
    let own = json!({"SysProfile": "Custom", "ProcPwrPerf": "MaxPerf", "ProcCStates": "Disabled", "ProcC1E": "Disabled",
        "MemRefreshRate": "2x", "ControlledTurbo": "Enabled", "ProcTurboMode": "Enabled"});
    let mut server = Simulated::dell(&own);
    let (first, saved) = (server.active.clone(), saved(&server));
    assert_eq!(first["Proc1ControlledTurbo"], "ControlledTurboLimit");
    server.start(&json!({"SysProfile": "DenseCfgOptimized"}));
    assert_eq!(
        (&server.active["ControlledTurbo"], &server.active["ProcCoreSpeed"]),
        (&json!("Disabled"), &json!("2.60 GHz"))
    );
    assert_eq!(server.restore(&saved).left_out, []);
    assert_eq!(server.active, first);
}

#[test]
fn what_unlocks_another_setting_is_restored_before_it() {
    let mut server = Simulated::dell(&json!({}));
    let (first, saved) = (server.active.clone(), saved(&server));
    server.start(&json!({"ProcVirtualization": "Disabled", "NodeInterleave": "Enabled"}));
    assert_eq!(
        (&server.active["ProcX2Apic"], &server.active["SubNumaCluster"]),
        (&json!("Disabled"), &json!("Disabled"))
    );
    let change = BiosChange::restoring(&server.facts(), "before.json", &saved).unwrap();
    assert_eq!(
        body(&change.request.unwrap()),
        &json!({"NodeInterleave": "Disabled", "ProcVirtualization": "Enabled"})
    );
    assert_eq!((change.later_requests, change.left_out), (1, Vec::new()));
    assert_eq!(server.restore(&saved).left_out, []);
    assert_eq!(server.active, first);
}

#[test]
fn what_is_forced_locked_or_computed_is_named_one_by_one() {
    let server = Simulated::dell(&json!({}));
    let mut saved: Value = serde_json::from_slice(&saved(&server)).unwrap();
    let snapshot = saved["snapshot"].as_object_mut().unwrap();
    for (name, value) in [
        // Its profile forces another value; so does another setting; only the BIOS knows it; it is gone.
        ("ProcC1E", "Disabled"),
        ("NodeInterleave", "Enabled"),
        ("ProcCoreSpeed", "3.40 GHz"),
        ("Gone", "1"),
    ] {
        snapshot.insert(name.into(), value.into());
    }
    let saved = saved.to_string().into_bytes();
    let mut server = server;
    server.start(&json!({"SysProfile": "PerfOptimized", "NodeInterleave": "Disabled"}));
    let end = server.restore(&saved);
    let left: Vec<String> =
        end.left_out.iter().map(|row| format!("{}: {}", row.attribute, row.why)).collect();
    assert_eq!(
        left,
        [
            "ProcC1E: it was Disabled, and SysProfile = PerfPerWattOptimizedDapc makes it Enabled",
            "SubNumaCluster: it was 2-Way, and NodeInterleave = Enabled makes it Disabled",
            "Gone: this BIOS has no such attribute",
        ]
    );
    let computed = "ProcCoreSpeed is not restored: it was 3.40 GHz, is 3.00 GHz, and the BIOS computes it.";
    assert!(end.warnings.iter().any(|warning| warning == computed), "{:?}", end.warnings);
    // It is said before anything is changed, too.
    let odd = json!({"SysProfile": "PerfPerWattOptimizedDapc", "ProcC1E": "Disabled"});
    let mut before = Simulated::dell(&json!({}));
    before.active.extend(odd.as_object().unwrap().clone());
    let warnings = BiosExport::of(&before.facts(), Profile::Trading, &[]).warnings.join("\n");
    assert!(
        warnings.contains("A restore cannot bring ProcC1E back: it was Disabled, and SysProfile"),
        "{warnings}"
    );
}

/// On a server in lockdown the registry marks everything as read-only.
#[test]
fn nothing_is_sent_to_a_server_in_lockdown() {
    let mut server = Simulated::dell(&json!({}));
    server.firmware.is_locked_down = true;
    let export = export(&server);
    assert_eq!((export.steps, export.restore), (Vec::new(), Vec::new()));
    let why = |id: &str| export.left_out.iter().find(|row| row.id == id).map(|row| row.why.as_str());
    let profile = "SysProfile = PerfPerWattOptimizedDapc controls it";
    assert_eq!(why("firmware.smt"), Some("read-only according to the registry"));
    assert_eq!((why("firmware.workload_profile"), why("firmware.c1e")), (why("firmware.smt"), Some(profile)));
    let audit = BiosAudit::of(&server.facts(), Profile::Trading);
    assert_eq!(verdict(&audit, "firmware.smt").1, "read-only according to the registry");
    assert_eq!(audit.order, Vec::<String>::new());
}
