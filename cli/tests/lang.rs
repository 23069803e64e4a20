//! Pages in Chinese.

use crate::common::{self, lowlat, text};
use lowlat_catalogue::CATALOGUE;
use lowlat_plan::proof::{OnOffPair, PlanProof, ProofFigure, ProofUnit, ProvenSettings};
use lowlat_settings::Want;
use serde_json::Value;
use std::collections::BTreeSet;
use std::{path::Path, sync::LazyLock};

fn result(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/results").join(name).display().to_string()
}

/// Words that only English sentences contain: a text with one is no name.
const ENGLISH: &[&str] = &[
    "a", "after", "all", "an", "and", "are", "as", "at", "before", "by", "does", "for", "from", "has",
    "have", "in", "is", "it", "more", "no", "not", "of", "on", "or", "than", "that", "the", "this", "to",
    "was", "which", "with", "without",
];

/// Names with such a word.
const NAMES: &[&str] = &[
    "Arm Server with Arm Neoverse-N1",
    "CDN Support for LOMs and Slots",
    "Shutdown/Halt on Critical Fan Failures",
];

fn is_english(text: &str) -> bool {
    let is_name = NAMES.contains(&text) || CATALOGUE.settings().any(|setting| setting.name == text);
    let is_joint = |character: char| !character.is_ascii_alphabetic();
    let mut words = text.split_whitespace().map(|word| word.strip_suffix(is_joint).unwrap_or(word));
    !is_name && words.any(|word| ENGLISH.contains(&word))
}

#[test]
fn every_text_of_a_setting_has_a_translation() {
    let chinese = lowlat_lang::chinese();
    let mut missing = BTreeSet::new();
    for setting in CATALOGUE.settings() {
        let wanted =
            lowlat_host::Profile::ALL.map(|profile| setting.want(profile)).into_iter().filter_map(|want| {
                match want {
                    Want::State(state) => Some(state),
                    _ => None,
                }
            });
        let texts =
            [setting.reason, setting.cost, setting.effective, setting.hazard].into_iter().chain(wanted);
        for text in texts {
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            missing.extend(lowlat_lang::misses(&format!("<p>{escaped}</p>"), &chinese));
        }
    }
    missing.retain(|text| is_english(text));
    assert!(missing.is_empty(), "no entry in frame/lang/zh for {missing:#?}");
}

/// The texts without a translation in the pages of all captured hosts and documents.
#[test]
fn pages_have_no_english_sentences_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html").display().to_string();
    let document = folder.path().join("document.json").display().to_string();
    let mut pages: Vec<Vec<String>> = Vec::new();
    let arguments = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    for (_, host) in common::fixtures() {
        let host = host.display().to_string();
        for profile in ["trading", "guide-57037"] {
            pages.push(arguments(&[
                "assess",
                "--root",
                &host,
                "--profile",
                profile,
                "--no-measure",
                "--report",
                &page,
                "--result",
                &document,
            ]));
        }
        pages.push(arguments(&["bios", "sheet", "--root", &host, "--report", &page]));
    }
    let redfish = |name: &str| format!("{}/../fixtures/redfish/{name}", env!("CARGO_MANIFEST_DIR"));
    for files in [
        &["dell-idrac.json"][..],
        &["hpe-ilo5-bios.json", "hpe-ilo5-settings.json", "hpe-ilo5-registry.json"],
        &["standard-bios.json", "standard-settings.json"],
    ] {
        let named = files.iter().flat_map(|name| ["--file".to_owned(), redfish(name)]);
        for command in ["sheet", "audit"] {
            let command = arguments(&["bios", command, "--report", &page]).into_iter();
            pages.push(command.chain(named.clone()).collect());
        }
    }
    for (at, boots) in [0, 70].into_iter().enumerate() {
        let file = folder.path().join(format!("proof-{at}.json")).display().to_string();
        std::fs::write(&file, serde_json::to_vec(&proof(boots)).expect("a document")).expect("a file");
        pages.push(arguments(&["report", "render", &file, "--report", &page]));
    }
    let results = ["assess.json", "assess-unmeasured.json", "jitter.json"].map(result).to_vec();
    for command in ["render", "fleet", "compare"] {
        pages.push(
            [arguments(&["report", command]), results.clone(), arguments(&["--report", &page])].concat(),
        );
    }
    let mut measured = vec![
        &["clock", "--duration", "50ms"][..],
        &["memory", "--buffer", "8M", "--largest", "8M", "--rounds", "1", "--curves"],
    ];
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        measured.push(&["false-sharing", "--rounds", "1"]);
    }
    let chinese = lowlat_lang::chinese();
    let mut missing = BTreeSet::new();
    for command in measured {
        let run = lowlat(&[&["cache"], command, &["--report", &page]].concat());
        assert_eq!(run.status.code(), Some(0), "{command:?}: {}", text(&run.stderr));
        let english = std::fs::read_to_string(&page).expect("a page");
        // Of this host, only the section of the measurement.
        let section = english.split_once(&format!("<section id=\"{}\"", command[0])).expect("a section").1;
        let section = section.split_once("</section>").expect("its end").0;
        let mut texts = lowlat_lang::misses(&format!("<section{section}</section>"), &chinese);
        // Sentences with figures differ from run to run.
        texts.retain(|text| !text.contains(char::is_numeric) && text.contains(char::is_lowercase));
        assert!(texts.is_empty(), "no entry in frame/lang/zh for {texts:#?}");
    }
    for arguments in &pages {
        let run = lowlat(arguments);
        assert!(matches!(run.status.code(), Some(0 | 1)), "{arguments:?}: {}", text(&run.stderr));
        let english = std::fs::read_to_string(&page).expect("a page");
        assert!(english.contains("<html lang=\"en\">"));
        missing.extend(lowlat_lang::misses(&english, &chinese));
    }
    missing.retain(|text| is_english(text));
    assert!(missing.is_empty(), "no entry in frame/lang/zh for {} texts: {missing:#?}", missing.len());
}

/// A proof with each verdict, in which everything went wrong that a page tells.
fn proof(boots: u32) -> PlanProof {
    let pairs = |shift: f64, longest: f64| -> Vec<OnOffPair> {
        let noise = |at: u32| f64::from(at * 7 % 12) - 5.5;
        let pair = |at| OnOffPair {
            on: vec![1e3, 50.0],
            off: vec![1e3 + shift + noise(at), 50.0 + longest + noise(at + 5)],
            is_on_first: at % 2 == 0,
        };
        (0..12).map(pair).collect()
    };
    let proven = |id: &str, pairs, unmeasured: Option<&str>| ProvenSettings {
        settings: vec![id.to_owned()],
        pairs,
        disturbed_pairs: 1,
        unmeasured: unmeasured.map(str::to_owned),
        ..ProvenSettings::default()
    };
    let figure = |name: &str, unit| ProofFigure { name: name.to_owned(), unit };
    let mut proof = PlanProof {
        document: PlanProof::DOCUMENT.to_owned(),
        schema_version: PlanProof::SCHEMA_VERSION,
        started_at: "2026-11-30T12:00:00Z".to_owned(),
        plan_id: "4ec8ff579983d6a9".to_owned(),
        slice_ms: 1_000,
        measured: "jitter of CPUs 1-3".to_owned(),
        figures: vec![figure("time taken", ProofUnit::NsPerS), figure("longest", ProofUnit::Ns)],
        settings: vec![
            proven("sysctl.a", pairs(100.0, 0.0), None),
            proven("b", pairs(0.0, -60.0), None),
            proven("c", pairs(100.0, -60.0), None),
            proven("d", pairs(0.0, 0.0), None),
            proven("e", Vec::new(), Some("it takes effect at the next boot")),
            proven("f", Vec::new(), None),
            proven("g", Vec::new(), Some("`lowlat tune prove` without --reboots measures it")),
        ],
        rounds: 12,
        boots,
        is_interrupted: true,
        ..PlanProof::default()
    };
    proof.judge();
    proof
}

#[test]
fn a_chinese_page_is_asked_for_by_its_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let document = result("assess.json");
    let render = |language: &str| {
        let run = lowlat(&[
            "report",
            "render",
            &document,
            "--report",
            &page.display().to_string(),
            "--lang",
            language,
        ]);
        (run.status.code(), std::fs::read_to_string(&page).unwrap_or_default(), text(&run.stderr))
    };
    let (code, chinese, _) = render("zh");
    assert_eq!(code, Some(0));
    assert!(chinese.contains("期望值"), "the page is not in Chinese");
    let (code, english, _) = render("en");
    assert_eq!(code, Some(0));
    assert!(english.contains("Wanted") && !english.contains("期望值"));
    let (code, _, message) = render("de");
    assert!(code == Some(2) && message.contains("en, zh"), "{message}");
}

/// The Chinese page of a text.
fn in_chinese(text: &str) -> String {
    static CHINESE: LazyLock<lowlat_lang::Dictionary> = LazyLock::new(lowlat_lang::chinese);
    lowlat_lang::translated(&format!("<td>{text}</td>"), "zh-CN", &CHINESE)
}

/// People look for the values in the firmware's menus.
#[test]
fn firmware_values_stay_as_the_firmware_prints_them() {
    let mut seen = 0;
    for profile in lowlat_host::Profile::ALL {
        for processor in ["AMD EPYC 7F32 8-Core Processor", "AMD EPYC 7543 32-Core Processor"] {
            let sheet = lowlat_bios::BiosSheet::of(profile, Some(processor));
            for row in sheet.menus.iter().flat_map(|menu| &menu.rows) {
                let (name, value) = (in_chinese(&row.name), in_chinese(&row.value()));
                assert_eq!(name, format!("<td>{}</td>", row.name));
                for part in row.value().split(" or ").flat_map(|part| part.split(", then ")) {
                    seen += 1;
                    assert!(value.contains(part), "{}: {part}: {value}", row.name);
                }
            }
        }
    }
    assert!(seen > 150, "{seen} values");
    for setting in CATALOGUE.settings().filter(|setting| setting.layer == lowlat_settings::Layer::Firmware) {
        let values =
            lowlat_host::Profile::ALL.map(|profile| setting.want(profile)).into_iter().flat_map(|want| {
                match want {
                    Want::Value(value) => vec![value],
                    Want::OneOf(values) => values.to_vec(),
                    _ => Vec::new(),
                }
            });
        for value in values {
            assert_eq!(in_chinese(value), format!("<td>{value}</td>"), "{}", setting.id);
        }
    }
}

/// A server's own names and values, some of which are words that the catalogue has.
#[test]
fn a_server_s_sheet_has_its_firmware_s_words_and_our_chinese() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let bios = r##"[{"@odata.type": "#ComputerSystem.v1", "Manufacturer": "Dell Inc."}, {"Attributes": {"LogicalProc": "Power"}},
        {"RegistryEntries": {"Attributes": [{"AttributeName": "LogicalProc", "DisplayName": "Memory", "MenuPath": "System",
            "Value": [{"ValueName": "Power"}, {"ValueName": "Disabled", "ValueDisplayName": "Name"}]}]}}]"##;
    std::fs::write(at("bios"), bios).expect("a file");
    let run = lowlat(&["bios", "sheet", "--file", &at("bios"), "--report", &at("page"), "--lang", "zh"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let page = std::fs::read_to_string(at("page")).expect("a page");
    for part in [
        "Dell Inc.",
        "<h2 id=\"sheet-title\">profile trading 的 BIOS 设置</h2>",
        ">System</h3>",
        ">Memory</th>",
        ">Name</bdi>",
        ">Power</td>",
        "选 Finish，询问是否保存时选 Yes。",
        "签名",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
}

#[test]
fn terms_of_the_page_are_the_same_everywhere() {
    for (text, chinese) in [("none known", "暂无已知风险"), ("Findings", "检查结果")] {
        assert_eq!(in_chinese(text), format!("<td>{chinese}</td>"));
    }
}

/// Whatever ended a run, and whatever is known about it.
#[test]
fn what_ended_a_run_has_a_translation() {
    let (hit, origin) = (
        serde_json::json!({"cpu": 1, "at_ns": 3_955_258, "length_ns": 8_035_917,
            "cause": {"kind": "thread", "name": "rustc", "number": 19_988, "priority": "nice 0"}}),
        serde_json::json!({"known": {"thread": 7, "name": "md", "level": "thread", "cpus": "0",
            "path": ["try_to_wake_up", "hrtimer hrtimer_wakeup"]}}),
    );
    let no_stack = "the trace has no stack; it came from md (pid 7)";
    let hidden = "the kernel hides the addresses of its functions (kernel.kptr_restrict); it came from interrupt on CPU 1";
    let own = "no stack is recorded where a thread is woken on its own CPU; it came from softirq on CPU 1";
    let none = "no wake-up of a thread and no interrupt from another CPU is in the trace";
    let unread = "/proc/kallsyms cannot be read; it came from md (pid 7)";
    let mut stops = vec![serde_json::json!({"on_ns": 50_000, "hit": null})];
    for offset_ns in [-12_345, 12_345] {
        stops.push(
            serde_json::json!({"on_ns": 50_000, "hit": hit, "origin": origin, "origin_offset_ns": offset_ns}),
        );
    }
    for reason in ["", no_stack, hidden, own, none, unread] {
        stops.push(
            serde_json::json!({"on_ns": 50_000, "hit": hit, "origin": "absent", "origin_reason": reason}),
        );
    }
    let (mut missing, chinese) = (BTreeSet::new(), lowlat_lang::chinese());
    let measured = std::fs::read_to_string(result("jitter.json")).expect("a fixture");
    let measured: Value = serde_json::from_str(&measured).expect("JSON");
    for (stop, wake_every) in stops.iter().flat_map(|stop| [(stop, Value::Null), (stop, 1_000_000.into())]) {
        let mut record = measured["measurements"][0]["record"].clone();
        (record["stop"], record["wake_every_ns"]) = (stop.clone(), wake_every);
        let record = serde_json::from_value(record).expect("a record");
        for text in lowlat_jitter_report::stop_text(&record) {
            missing.extend(lowlat_lang::misses(&format!("<p>{text}</p>"), &chinese));
        }
    }
    missing.retain(|text| is_english(text));
    assert!(missing.is_empty(), "no entry in frame/lang/zh for {missing:#?}");
}

/// Names that a host or its firmware chose, each a word that the catalogue has.
#[test]
fn names_of_the_firmware_and_of_interfaces_stay_as_they_are() {
    let mut document: Value =
        serde_json::from_str(&std::fs::read_to_string(result("assess.json")).expect("a fixture"))
            .expect("JSON");
    let known = |value: &str| serde_json::json!({ "known": value });
    let firmware = &mut document["snapshot"]["firmware"];
    for (field, value) in [
        ("system_vendor", "System"),
        ("system_product", "Power"),
        ("bios_vendor", "None"),
        ("bios_version", "Unknown"),
    ] {
        firmware[field] = known(value);
    }
    document["snapshot"]["nics"][0]["name"] = "data".into();
    let folder = tempfile::tempdir().expect("a directory");
    let (file, page) = (folder.path().join("d.json"), folder.path().join("d.html"));
    std::fs::write(&file, document.to_string()).expect("a file");
    let (file, shown) = (file.display().to_string(), page.display().to_string());
    let run = lowlat(&["report", "render", &file, "--report", &shown, "--lang", "zh"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let page = std::fs::read_to_string(page).expect("a page");
    for whole in [">System Power</dd>", ">None Unknown", ">data<span"] {
        assert!(page.contains(whole), "{whole}");
    }
}
