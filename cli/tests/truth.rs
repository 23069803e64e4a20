//! Answers of Debian's kernels to each setting, recorded by `lab/truth`: the judges agree, and the page shows them.

use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, CpuSet, HostSnapshot, Profile, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_settings::{Context, Layer, Verdict, Want, judge_one};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The kernels, in the order of the page.
const KERNELS: [&str; 7] = ["5.10", "6.1", "6.12", "7.2", "7.3", "6.12-rt", "7.3-rt"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Answer {
    #[serde(rename = "effective")]
    Effective,
    #[serde(rename = "accepted")]
    Accepted,
    #[serde(rename = "ignored")]
    Ignored,
    #[serde(rename = "refused")]
    Refused,
    #[serde(rename = "absent")]
    Absent,
    #[serde(rename = "not seen")]
    NotSeen,
}

impl Answer {
    fn word(self) -> &'static str {
        match self {
            Self::Effective => "**effective**",
            Self::Accepted => "accepted",
            Self::Ignored => "ignored",
            Self::Refused => "refused",
            Self::Absent => "absent",
            Self::NotSeen => "not seen",
        }
    }
}

#[derive(Deserialize)]
struct Cell {
    tried: String,
    answer: Answer,
    detail: String,
    /// True if the capture was taken with the setting.
    #[serde(default = "yes")]
    in_capture: bool,
}

/// The recorded answers, read once.
static KERNELS_READ: OnceLock<Vec<(&'static str, Kernel)>> = OnceLock::new();

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Kernel {
    release: String,
    settings: BTreeMap<String, Cell>,
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn kernels() -> Vec<(&'static str, Kernel)> {
    let read = |name| {
        let path = top().join(format!("fixtures/truth/{name}.json"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (name, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    KERNELS.into_iter().map(read).collect()
}

/// Answer of each kernel to a setting; empty if none was tried.
pub fn answers(id: &str) -> Vec<(&'static str, &'static str)> {
    let kernels = KERNELS_READ.get_or_init(kernels);
    let of_kernel = |(name, kernel): &(&'static str, Kernel)| {
        Some((*name, kernel.settings.get(id)?.answer.word().trim_matches('*')))
    };
    kernels.iter().filter_map(of_kernel).collect()
}

/// The host after every setting was made.
fn host(kernel: &str) -> HostSnapshot {
    let path = top().join(format!("fixtures/truth/{kernel}.tar.gz"));
    snapshot::read(&Root::open(&path).unwrap_or_else(|error| panic!("{error}")), CATALOGUE)
}

/// Verdicts of a setting in the profiles that want something of it.
fn verdicts(host: &HostSnapshot, id: &str) -> Vec<(Profile, Verdict, String)> {
    let setting = CATALOGUE.find(id).unwrap_or_else(|| panic!("{id} is no setting"));
    let cpus = |list: &str| Some(CpuSet::parse_list(list).expect("a list of CPUs"));
    let judge = |profile| {
        let role = Role { profile, housekeeping: cpus("0-1"), isolated: cpus("2-3"), ..Role::default() };
        let allocation = Allocation::choose(host, &role);
        let context = Context { host, role: &role, allocation: &allocation, profile, catalogue: CATALOGUE };
        let finding = judge_one(&context, setting);
        (profile, finding.verdict, format!("{}; {}", finding.observed, finding.because))
    };
    let wanted = Profile::ALL.into_iter().filter(|profile| !matches!(setting.want(*profile), Want::Nothing));
    wanted.map(judge).collect()
}

/// Settings whose verdict on the captures says something else than the kernel's answer, with the reason.
const EXCUSED: [(&str, &str); 10] = [
    ("boot.hugepages", "the guest has memory for 8 pages; the guide reserves 6000"),
    ("boot.intel_idle.max_cstate", "wanted on Intel's processors"),
    ("memory.huge_pages_spread", "irrelevant on one node"),
    ("memory.thp_defrag", "irrelevant while transparent huge pages are off"),
    ("memory.thp_khugepaged_defrag", "irrelevant while transparent huge pages are off"),
    ("sysfs.block.scheduler", "the emulated disk is a hidden path of a multipath disk"),
    ("sysfs.cpu.online_cycle", "leaves no trace on the host"),
    ("sysfs.cpu_dma_latency", "irrelevant without idle states"),
    ("sysfs.cpuset.partition", "tried without isolcpus=, and removed again"),
    ("sysfs.pcie_aspm.policy", "does not apply to virtual machines"),
];

/// True if the verdicts of the profiles fit what the kernel did with the setting.
fn agrees(answer: Answer, verdicts: &[(Profile, Verdict, String)]) -> bool {
    let is_any = |verdict| verdicts.iter().any(|(_, judged, _)| *judged == verdict);
    match answer {
        // Profiles may want different values, and one was tried.
        Answer::Effective | Answer::Accepted => is_any(Verdict::Good),
        Answer::Ignored | Answer::Refused => !is_any(Verdict::Good),
        Answer::Absent => !is_any(Verdict::Good) && !is_any(Verdict::Wrong),
        Answer::NotSeen => true,
    }
}

#[test]
fn the_judges_agree_with_the_kernels() {
    let (mut differences, mut used) = (String::new(), BTreeSet::new());
    for (name, kernel) in kernels() {
        let host = host(name);
        assert_eq!(host.kernel.release.text(), kernel.release, "{name}");
        for (id, cell) in &kernel.settings {
            let verdicts = verdicts(&host, id);
            if !cell.in_capture || agrees(cell.answer, &verdicts) {
                continue;
            }
            if let Some((excused, _)) = EXCUSED.iter().find(|(excused, _)| excused == id) {
                used.insert(*excused);
                continue;
            }
            let _ =
                writeln!(differences, "{name} {id}: {:?} {}, judged {verdicts:?}", cell.answer, cell.tried);
        }
    }
    assert!(differences.is_empty(), "{differences}");
    let unused: Vec<_> = EXCUSED.iter().filter(|(id, _)| !used.contains(id)).collect();
    assert!(unused.is_empty(), "no longer needed: {unused:?}");
}

/// Settings that are missing from the data, by reason.
const UNTRIED: &[(&str, &[&str])] = &[
    (
        "lowlat reports them and changes nothing, or removes a word that someone wrote",
        &[
            "boot.amd_pstate",
            "boot.console_serial",
            "boot.efi_runtime",
            "boot.mitigations",
            "boot.split_lock_detect",
            "memory.far_node_demotion",
            "memory.module_speed",
            "memory.module_uniform",
            "memory.population_balance",
            "memory.swap_used",
            "nic.drops",
            "nic.isolated_cpus_near",
            "nic.link_up",
            "nic.numa_node",
            "nic.onload",
            "nic.pcie_aspm",
            "nic.pcie_link_speed",
            "nic.pcie_link_width",
            "nic.solarflare_firmware_variant",
            "nic.timestamp_static_key",
            "sysctl.kernel.core_pattern",
            "sysfs.microcode_uniform",
            "sysfs.smt.siblings_split",
            "sysfs.topology.cluster_shared",
            "sysfs.topology.efficiency_cores",
            "sysfs.topology.llc_shared",
            "sysfs.tsc_flags",
            "sysfs.vulnerabilities",
        ],
    ),
    (
        "files and services of the distribution, which no kernel reads",
        &[
            "boot.first_token",
            "boot.grubenv_limit",
            "irq.irqbalance_banned",
            "sysctl.file.100-lowlatency",
            "sysfs.cgroup_v2",
        ],
    ),
    ("part of `isolcpus=managed_irq` and of `irq.affinity`", &["irq.managed", "irq.spread_nic_queues"]),
    (
        "the NIC and its driver decide, not the kernel's version; the virtual NIC has none of it",
        &[
            "nic.adaptive_rx",
            "nic.adaptive_tx",
            "nic.eee",
            "nic.fec",
            "nic.hardware_timestamping",
            "nic.lro",
            "nic.pause",
            "nic.queue_count",
            "nic.rings",
            "nic.rss_indirection",
            "nic.rx_usecs",
            "nic.rx_usecs_irq",
            "nic.tph",
            "nic.tx_usecs",
            "nic.xps",
        ],
    ),
    ("set by netlink, which the guest's script does not speak", &["nic.irq_suspend_timeout"]),
    ("set through Onload's module, which the kernel does not have", &["nic.onload_queues"]),
    ("the emulated processor cannot divide its cache", &["sysfs.resctrl.ways"]),
    ("no BPF scheduler is loaded, so there is nothing to stop", &["sysfs.sched_ext"]),
];

#[test]
fn every_setting_of_the_kernel_is_tried_or_says_why_not() {
    let layers = [
        Layer::Boot,
        Layer::Sysctl,
        Layer::Debugfs,
        Layer::Sysfs,
        Layer::Memory,
        Layer::Irq,
        Layer::Kthread,
        Layer::Nic,
    ];
    let excused: BTreeSet<&str> = UNTRIED.iter().flat_map(|(_, ids)| ids.iter().copied()).collect();
    let all: BTreeSet<&str> = CATALOGUE
        .settings()
        .filter(|setting| layers.contains(&setting.layer))
        .map(|setting| setting.id)
        .collect();
    for (name, kernel) in kernels() {
        let tried: BTreeSet<&str> = kernel.settings.keys().map(String::as_str).collect();
        let missing: Vec<_> =
            all.iter().filter(|id| !tried.contains(*id) && !excused.contains(*id)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
        let both: Vec<_> = excused.iter().filter(|id| tried.contains(*id) || !all.contains(*id)).collect();
        assert!(both.is_empty(), "{name}: tried, or no setting: {both:?}");
    }
}

/// The page of the data.
fn page() -> String {
    let kernels = kernels();
    let mut page = PREFACE.to_owned();
    let head: Vec<&str> = kernels.iter().map(|(name, _)| *name).collect();
    let _ =
        writeln!(page, "| setting | tried | {} |\n|---|---|{}", head.join(" | "), "---|".repeat(head.len()));
    let ids: BTreeSet<&String> = kernels.iter().flat_map(|(_, kernel)| kernel.settings.keys()).collect();
    let mut notes: BTreeMap<(&String, &str), Vec<&str>> = BTreeMap::new();
    for id in ids {
        let cells: Vec<_> = kernels.iter().map(|(name, kernel)| (name, kernel.settings.get(id))).collect();
        let tried = cells
            .iter()
            .filter_map(|(_, cell)| Some(cell.as_ref()?.tried.as_str()))
            .find(|tried| !tried.is_empty());
        let answers: Vec<&str> = cells
            .iter()
            .map(|(_, cell)| cell.as_ref().map_or("not seen", |cell| cell.answer.word()))
            .collect();
        let tried = tried.map(|tried| format!("`{tried}`")).unwrap_or_default();
        let _ = writeln!(page, "| `{id}` | {tried} | {} |", answers.join(" | "));
        for (name, cell) in cells {
            let detail = cell.as_ref().map_or("not tried yet", |cell| &cell.detail);
            if !detail.is_empty() && !detail.ends_with("does not exist") {
                notes.entry((id, detail)).or_default().push(name);
            }
        }
    }
    page.push_str(NOTES);
    for ((id, detail), names) in notes {
        let which = if names.len() == kernels.len() { "all".to_owned() } else { names.join(", ") };
        let _ = writeln!(page, "| `{id}` | {which} | {detail} |");
    }
    let _ = write!(page, "{RELEASES}");
    for (name, kernel) in &kernels {
        let _ = writeln!(page, "| {name} | {} |", kernel.release);
    }
    page.push_str(LEFT_OUT);
    for (reason, ids) in UNTRIED {
        let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
        let _ = writeln!(page, "- {}: {reason}.", ids.join(", "));
    }
    page
}

const PREFACE: &str = "# What each kernel does with each setting

`lab/truth` boots kernels of Debian in a virtual server and tries every setting of lowlat's catalogue, without lowlat: parameters by boots
with and without them, files by writing them. This page is generated from its data, `fixtures/truth/`; a test compares both, and another
one compares lowlat's verdicts with them.

| answer | meaning |
|---|---|
| **effective** | the kernel's behaviour changed, and a counter, timer, thread or fault shows it |
| accepted | the kernel keeps the value; no effect beyond that was looked for or could be seen |
| ignored | no error, and no effect |
| refused | the write fails |
| absent | this kernel has no such file, parameter or thread |
| not seen | nothing in the virtual server can show it; the notes say why |

## Settings

";

const NOTES: &str = "
## Notes

| setting | kernels | what was seen |
|---|---|---|
";

const RELEASES: &str = "
## Kernels

The server has four CPUs, of which 2-3 are isolated. It is emulated, so that no time is judged: effects are counts and states.

| kernel | Debian's release of it |
|---|---|
";

const LEFT_OUT: &str = "
## Settings that were not tried

";

/// `INSTA_UPDATE=always` writes the page.
#[test]
fn the_page_shows_the_data() {
    let path = top().join("docs/truth.md");
    let page = page();
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(&path).expect("docs/truth.md");
    assert_eq!(there, page, "docs/truth.md is not what fixtures/truth says; INSTA_UPDATE=always writes it");
}
