//! The guide's exact words, traps of shells and of other formats, and identical output each time.

use super::boot_words::{BootWord, boot_words};
use super::brief::Brief;
use super::{ExportedFile, FORMATS, Format};
use lowlat_catalogue::{
    CATALOGUE,
    testing::{Bench, GUIDE_LINE, list},
};
use lowlat_host::{CpuSet, Profile, Reading, cmdline::split, snapshot::SchedPolicy};

fn files(bench: &Bench, format: &str) -> Vec<ExportedFile> {
    Format::find(format).expect("a format").files(&bench.context(), "0.0.0")
}

#[track_caller]
fn text<'a>(files: &'a [ExportedFile], ending: &str) -> &'a str {
    let found = files.iter().find(|file| file.path.ends_with(ending));
    found.map_or_else(|| panic!("no file {ending}"), |file| file.text.as_str())
}

fn accepting_all(mut bench: Bench) -> Bench {
    bench.role.accepted_risks = CATALOGUE.settings().map(|setting| setting.id.to_owned()).collect();
    bench
}

/// Ranges of the CPU lists written out, as TuneD 2.12 did.
fn one_by_one(line: &str) -> String {
    let words = split(line).into_iter().map(|word| match word.split_once('=') {
        Some((name @ ("nohz_full" | "rcu_nocbs"), cpus)) => {
            let cpus: Vec<String> = list(cpus).iter().map(|cpu| cpu.to_string()).collect();
            format!("{name}={}", cpus.join(","))
        }
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Section 4.4.1 of the guide, letter by letter except for the ranges.
#[test]
fn the_tuned_profile_gives_the_guide_s_own_command_line() {
    let before = GUIDE_LINE.split(" quiet").next().unwrap();
    let bench = accepting_all(Bench::guide().line(before));
    let files = files(&bench, "tuned");
    let expected = text(&files, "expected-cmdline").trim_end();
    assert_eq!(one_by_one(expected), GUIDE_LINE);
    assert!(expected.contains("nohz_full=1-7,9-15 rcu_nocbs=1-7,9-15 tuned.non_isolcpus=00000101"));
}

/// TuneD appends, and the kernel uses the first of some parameters: name of the case, present line, words to remove.
#[test]
fn words_that_would_win_over_the_profile_are_named_and_left_out_of_the_expected_line() {
    for (line, removed) in [
        ("root=LABEL=X ro isolcpus=1-3 nohz_full=1-3", "isolcpus=1-3 nohz_full=1-3"),
        ("ro nohz-full=2 irqaffinity=0-3 skew_tick=0", "nohz-full=2"),
        ("ro isolcpus=domain,managed_irq,9-15,1-7 quiet", ""),
        ("ro irqaffinity=0-3", ""),
        ("ro nohz=off", "nohz=off"),
    ] {
        let files = files(&Bench::trading().line(line), "tuned");
        let readme = text(&files, "README").split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = text(&files, "expected-cmdline");
        let said = readme.contains("First remove");
        assert_eq!(said, !removed.is_empty(), "{line}: {readme}");
        assert!(readme.contains(&format!("remove {removed}")) || !said, "{line}: {readme}");
        for word in removed.split_whitespace() {
            assert!(!expected.split_whitespace().any(|other| other == word), "{line}: {expected}");
        }
        for word in line.split(' ').filter(|word| !removed.contains(word)) {
            assert!(expected.split_whitespace().any(|other| other == word), "{line}: {expected}");
        }
    }
}

/// A host that TuneD has set up already: its part of the line is replaced, not doubled.
#[test]
fn the_line_is_the_same_when_the_profile_is_in_force() {
    let (_, by_tuned) = GUIDE_LINE.split_once("rhgb ").unwrap();
    let bench = accepting_all(Bench::guide()).knob(
        "/etc/tuned/bootcmdline",
        &format!("TUNED_BOOT_CMDLINE=\"{by_tuned}\"\nTUNED_BOOT_INITRD_ADD=\n"),
    );
    let files = files(&bench, "tuned");
    assert_eq!(one_by_one(text(&files, "expected-cmdline").trim_end()), GUIDE_LINE);
}

#[test]
fn a_risk_that_is_not_accepted_stands_on_no_line_and_is_named() {
    for profile in Profile::ALL {
        let bench = Bench { profile, ..Bench::guide().line("ro") };
        for format in FORMATS {
            for file in files(&bench, format.name) {
                let code = file.text.lines().filter(|line| !line.trim_start().starts_with('#'));
                let is_told = |line: &&str| !line.contains("(security)") && !line.contains("accept-risk");
                let code: Vec<&str> = code.filter(is_told).collect();
                for word in ["selinux=0", "audit=0", "mce=ignore_ce"] {
                    assert!(!code.iter().any(|line| line.contains(word)), "{profile} {}: {word}", file.path);
                }
            }
        }
    }
    let guide = files(&Bench::guide().line("ro"), "tuned");
    assert!(text(&guide, "tuned.conf").contains("#   selinux=0 boot.selinux: No mandatory access control."));
    assert!(text(&guide, "README").contains("boot.selinux (security)"));
    // The included profile would stop the polling although its risk is not accepted.
    assert!(text(&guide, "tuned.conf").contains("machinecheck*/ignore_ce=0"));
    let accepted = files(&accepting_all(Bench::guide().line("ro")), "tuned");
    assert!(!text(&accepted, "tuned.conf").contains("machinecheck*/ignore_ce=0"));
}

#[test]
fn the_first_word_is_one_that_may_be_lost() {
    for profile in Profile::ALL {
        let bench = Bench { profile, ..Bench::guide().line("ro") };
        let files = files(&bench, "tuned");
        let line = text(&files, "tuned.conf").lines().find(|line| line.starts_with("cmdline=")).unwrap();
        assert!(line.starts_with("cmdline=quiet "), "{line}");
    }
}

#[test]
fn numbers_that_are_no_cpus_stay_numbers() {
    let mut bench = Bench::guide().line("ro");
    bench.allocation.housekeeping = list("0");
    bench.allocation.isolated = list("1-15");
    let files = files(&bench, "tuned");
    assert!(text(&files, "tuned.conf").contains(" processor.max_cstate=0 "));
    assert!(text(&files, "expected-cmdline").contains(" processor.max_cstate=0 "));
}

#[test]
fn a_host_without_isolated_cpus_gets_no_profile_that_would_refuse_to_load() {
    let mut bench = Bench::guide().line("ro");
    bench.host.topology.online = CpuSet::first(1);
    bench.allocation.housekeeping = list("0");
    bench.allocation.isolated = CpuSet::new();
    let words = boot_words(&Brief::of(&bench.context(), "0.0.0"));
    assert!(!words.iter().any(|word| matches!(word, BootWord::Set(word) if word.contains('{'))), "{words:?}");
    let tuned = files(&bench, "tuned");
    let conf = text(&tuned, "tuned.conf");
    assert!(conf.contains("include=network-latency") && !conf.contains("${"), "{conf}");
}

#[test]
fn the_sysctl_file_sorts_last_and_names_what_moved() {
    let bench = Bench::guide()
        .kernel(6, 1)
        .sysctl("kernel.numa_balancing", "0")
        .sysctl("vm.swappiness", "60")
        .sysctl_file("/etc/sysctl.d/99-zzz.conf", "vm.swappiness", "60");
    let files = files(&bench, "sysctl");
    let [file] = files.as_slice() else { panic!("one file") };
    assert_eq!(file.path, "zz-lowlat.conf", "behind 99-zzz.conf");
    assert!(
        file.text.contains("\nkernel.numa_balancing = 0\nvm.swappiness = 0\n"),
        "good keys too: {}",
        file.text
    );
    assert!(file.text.contains("Names are compared as text"));
    let moved = file.text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        moved.contains("kernel.sched_latency_ns: kernel 5.13 moved it to /sys/kernel/debug/sched/latency_ns"),
        "{moved}"
    );
    assert!(!file.text.contains("\nkernel.sched_latency_ns ="));
    // A key that this kernel does not have is not set.
    assert!(!file.text.contains("\nvm.stat_interval ="));
}

#[test]
fn masks_beyond_64_cpus_are_written_out() {
    let bench = Bench::trading().line("ro").with(|bench| {
        bench.host.topology.online = CpuSet::first(256);
        bench.host.interrupts.default_affinity = Reading::Known(CpuSet::first(256));
        bench.allocation.housekeeping = list("0,128");
        bench.allocation.isolated = list("1-127,129-255");
    });
    let script = &files(&bench, "shell")[0].text;
    let mask = "mask /proc/irq/default_smp_affinity 1,00000000,00000000,00000000,00000001\n";
    assert!(script.contains(mask), "{script}");
    assert!(script.contains("nohz_full=1-127,129-255"), "ranges on the line");
}

#[test]
fn what_a_host_says_stays_data() {
    let hostile = "x$(touch /tmp/x)'; `id` \"\n# end\r\n\u{2028}- hosts: all";
    let bench = Bench::trading()
        .line(&format!("ro nohz_full={hostile} other={hostile}"))
        .irq(41, hostile, "3", Reading::Known(false))
        .irq(42, "ahci[0000:00:1f.2]", "3", Reading::Known(false))
        .thread("rcu*[a]'\n", "0-15", (SchedPolicy::Other, 0), false)
        .thread("rcu_par_gp [a]", "0-15", (SchedPolicy::Other, 0), false)
        .with(|bench| {
            bench.host.kernel.release = Reading::Known(hostile.into());
            bench.host.firmware.system_product = Reading::Known(hostile.into());
            bench.host.firmware.system_vendor = Reading::Known(hostile.into());
        });
    for format in FORMATS {
        for file in files(&bench, format.name) {
            let wild = |c: char| c == '\u{2028}' || (c.is_control() && c != '\n' && c != '\t');
            assert!(!file.text.contains(wild), "{}", file.path);
            for line in file.text.lines().filter(|line| line.contains("touch")) {
                let is_comment = line.trim_start().starts_with('#') || file.path == "README";
                assert!(is_comment, "{}: {line}", file.path);
            }
        }
    }
    let script = &files(&bench, "shell")[0].text;
    assert!(script.contains(r"thread 'rcu_par_gp \[a\]' 0,8"), "a name is no pattern");
    assert!(script.contains("irq 42 1 'ahci[0000:00:1f.2]' 0,8"), "brackets are quoted: {script}");
    let plan = Brief::of(&bench.context(), "0.0.0").plan;
    let unfit: Vec<&str> = plan
        .left_out
        .iter()
        .filter(|left| left.why == lowlat_settings::change::WhyLeftOut::Unfit)
        .map(|left| left.setting.as_str())
        .collect();
    assert_eq!(unfit, ["irq.affinity", "kthread.rcu"]);
}

#[test]
fn interrupts_of_one_name_are_told_apart() {
    let bench = Bench::trading().line("ro").irq(7, "i8042", "0", Reading::Known(false)).irq(
        9,
        "i8042",
        "0-15",
        Reading::Known(false),
    );
    assert!(files(&bench, "shell")[0].text.contains("\n    irq 9 2 i8042 0,8\n"));
}

#[test]
fn what_stands_on_the_line_already_is_replaced() {
    let bench = Bench::trading().line("ro nohz_full=1-3 quiet");
    let script = &files(&bench, "shell")[0].text;
    assert!(script.contains("nohz-full | nohz_full) ;;"), "{script}");
    assert!(script.contains("nohz_full=1-7,9-15"), "{script}");
    assert!(script.contains("        nohz_full \\\n        nohz_full=1-3\n"));
}

#[test]
fn the_guide_s_ten_steps_are_there_and_the_harmful_ones_empty() {
    let steps = |bench: &Bench| super::steps::steps(&Brief::of(&bench.context(), "0.0.0"));
    let bench = Bench::guide().line("ro").unit("dbus.service", "active").unit("chronyd.service", "active");
    let careful = steps(&bench);
    let numbers: Vec<usize> = careful.iter().map(|step| step.number).collect();
    assert_eq!(numbers, (0..=10).collect::<Vec<_>>());
    for number in [4, 5, 9] {
        assert_eq!(careful[number].body, "    :\n", "step {number}");
    }
    assert!(careful[9].note.contains("service.chronyd") && careful[9].note.contains("service.dbus"));
    let bold = steps(&accepting_all(bench));
    assert!(bold[4].body.contains("cycle_cpus 1-7,9-15"));
    assert!(bold[5].body.contains("flush_filter iptables"));
    assert!(bold[9].body.contains("service chronyd.service") && !bold[9].body.contains("tuned"));
}

#[test]
fn every_file_says_who_made_it_and_the_same_each_time() {
    for profile in Profile::ALL {
        let bench = accepting_all(Bench { profile, ..Bench::guide().line("ro") });
        for format in FORMATS {
            let first = files(&bench, format.name);
            assert_eq!(first, files(&bench, format.name), "{}", format.name);
            let mut paths: Vec<&str> = first.iter().map(|file| file.path.as_str()).collect();
            paths.sort_unstable();
            paths.dedup();
            assert_eq!(paths.len(), first.len(), "{}", format.name);
            for file in &first {
                assert!(file.text.ends_with('\n') && !file.path.starts_with('/'), "{}", file.path);
                let is_headless = ["expected-cmdline", "requirements.yml"].contains(&file.path.as_str());
                let head = format!("Profile {profile}. Housekeeping CPUs 0,8, isolated CPUs 1-7,9-15.");
                let says = file.text.contains("Generated by lowlat 0.0.0 for ") && file.text.contains(&head);
                assert!(is_headless || says, "{} {}", format.name, file.path);
            }
        }
    }
}
