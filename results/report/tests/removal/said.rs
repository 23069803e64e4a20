//! The statements of lowlat about a host, and the comparison of two sets of them.

use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Profile, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::Plan;
use lowlat_settings::{Context, Verdict, audit::Audit};
use std::collections::{BTreeMap, BTreeSet};

/// Wide enough that no line is wrapped.
const WIDTH: usize = 65_000;

/// Words that say that something is not known.
const OPEN: &[&str] = &[
    "unknown",
    "not known",
    "unread",
    "not read",
    "denied",
    "unparsable",
    "absent",
    "could not",
    "cannot",
    "not checked",
    "does not exist",
    "not visible",
    "garbage",
    "expected ",
    "did not answer",
    "no SMBIOS tables",
    "at least",
    "warning: ",
];

/// Words that deny: what was not read gives no reason for them.
const DENIALS: &[&str] = &["no", "none", "nothing", "not", "without", "all", "every"];

/// The statements of lowlat about a host.
#[derive(Debug, PartialEq)]
pub struct Said {
    host: HostSnapshot,
    verdicts: BTreeMap<(String, String), Verdict>,
    scores: BTreeMap<String, Option<u8>>,
    /// Sentences by page and subject.
    sentences: BTreeMap<(&'static str, String), BTreeSet<String>>,
}

impl Said {
    /// Reads and judges the host.
    pub fn read(root: &Root) -> Self {
        let mut host = snapshot::read(root, CATALOGUE);
        host.kernel.default_boot_line = lowlat_tune_run::boot_loader::default_line(root);
        let mut said = Self {
            host: HostSnapshot::default(),
            verdicts: BTreeMap::new(),
            scores: BTreeMap::new(),
            sentences: BTreeMap::new(),
        };
        for profile in Profile::ALL {
            let role = Role { profile, ..Role::default() };
            let allocation = Allocation::choose(&host, &role);
            let context =
                Context { host: &host, role: &role, allocation: &allocation, profile, catalogue: CATALOGUE };
            let audit = Audit::of(&context);
            said.scores.insert(profile.to_string(), audit.score.percent);
            for finding in &audit.findings {
                said.verdicts.insert((profile.to_string(), finding.id.clone()), finding.verdict);
                // The verdict already says that a row is unknown.
                if finding.verdict == Verdict::Unknown {
                    continue;
                }
                let verdict = finding.verdict.word();
                said.add(
                    "audit",
                    &finding.id,
                    &format!("{verdict}: {} | {}", finding.observed, finding.because),
                );
            }
            said.add_lines("plan", &lowlat_tune_report::plan_text(&Plan::of(&context, "0"), WIDTH));
            if profile == Profile::Trading {
                said.add_lines("host show", &lowlat_host_report::host_text(&host, Some(&allocation), WIDTH));
                said.add_lines("cpus", &lowlat_host_report::choice_text(&allocation, WIDTH));
            }
        }
        said.host = host;
        said
    }

    fn add(&mut self, page: &'static str, about: &str, sentence: &str) {
        self.sentences.entry((page, about.to_owned())).or_default().insert(sentence.to_owned());
    }

    fn add_lines(&mut self, page: &'static str, text: &str) {
        let plain = anstream::adapter::strip_str(text).to_string();
        for line in plain.lines().map(str::trim).filter(|line| page != "plan" || !is_of_the_plan(line)) {
            let about = line.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or_default();
            self.add(page, about, line);
        }
    }

    /// Returns what is better now, although less was read, and what only the missing file could say.
    pub fn faults_of(&self, now: &Self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.host == now.host {
            return faults;
        }
        let mut is_narrower = false;
        for (row, verdict) in &now.verdicts {
            let was = self.verdicts[row];
            is_narrower |= *verdict == Verdict::NotApplicable && was != Verdict::NotApplicable;
            let is_better =
                *verdict == Verdict::Good && was != Verdict::Good && was != Verdict::NotApplicable
                    || *verdict == Verdict::NotApplicable && was.is_fault();
            if is_better {
                faults.push(format!("verdict of {}: {} becomes {}", row.1, was.word(), verdict.word()));
            }
        }
        for (profile, score) in &now.scores {
            let was = self.scores[profile];
            // Rows that stop to apply are judged above.
            if *score > was && !is_narrower {
                faults.push(format!("score {profile}: {was:?} becomes {score:?}"));
            }
        }
        for ((page, about), sentences) in &now.sentences {
            let before = self.sentences.get(&(*page, about.clone()));
            let known: BTreeSet<&str> =
                before.into_iter().flatten().flat_map(|text| claims(page, text)).collect();
            for sentence in sentences {
                let is_open = OPEN.iter().any(|word| sentence.contains(word));
                let is_new = before.is_none_or(|before| !before.contains(sentence));
                if is_new && !is_open && claims(page, sentence).any(|claim| !known.contains(claim)) {
                    faults.push(format!("{page}: {about}: {sentence}"));
                }
            }
        }
        faults
    }
}

/// A line that counts what the plan has, spells what it would write, or gives the catalogue's reasons: no facts of the
/// host.
fn is_of_the_plan(line: &str) -> bool {
    let is_sentence = line.starts_with(|c: char| c.is_uppercase()) && line.ends_with('.');
    is_sentence || ["command line: ", "+ "].iter().any(|start| line.starts_with(start))
}

/// The numbers and the denials of a sentence; of a plan only the denials, because it repeats what the audit saw. CPUs
/// are no numbers: a list becomes shorter, or a CPU stands alone, if a file of one CPU is missing.
fn claims<'a>(page: &str, sentence: &'a str) -> impl Iterator<Item = &'a str> {
    let has_numbers = page != "plan";
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ',';
    let words = sentence.split(move |c: char| !is_part(c)).map(|word| word.trim_matches([',', '-']));
    let mut is_cpu = false;
    words.filter(move |word| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty();
        let is_of_cpu = std::mem::replace(&mut is_cpu, matches!(*word, "CPU" | "CPUs"));
        is_number && has_numbers && !is_of_cpu || DENIALS.contains(word)
    })
}
