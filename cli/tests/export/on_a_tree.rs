//! The exported scripts, applied to a captured host unpacked into a directory, and undone.

use super::tree::{Places, Tree};
use super::{HostWithRole, SHELLS, assert_success, common, find, stock};
use lowlat_host::Profile;
use lowlat_plan::Plan;
use lowlat_settings::change::Target;
use std::{fs, process::Command};

/// A tree with services that the guide would stop, in the states that the plan says.
pub fn tree_of(desk: &HostWithRole, plan: &Plan) -> Tree {
    let tree = Tree::new("epyc-7f32-stock");
    for (unit, service) in &desk.host.services.units {
        if !unit.contains(['\\', '/']) {
            let state = format!("{}, {}\n", service.active.text(), service.enablement.text());
            tree.write(&format!("services/{unit}"), &state);
        }
    }
    for change in &plan.changes {
        if let Target::KernelThreadScheduling { pid, .. } = change.target {
            assert!(!tree.path(&format!("/proc/{pid}/scheduling")).exists());
        }
    }
    assert_success(&Command::new(tree.path("usr/sbin/update-grub")).output().expect("a stand-in"));
    tree
}

/// Every change of the plan is in force on the tree; after `undo` the tree is as before, byte for byte.
#[test]
fn the_script_carries_the_plan_out_and_takes_it_back() {
    let [dash, bash] = SHELLS;
    for (shell, profile, takes_all) in [
        (dash, Profile::Trading, false),
        (bash, Profile::Guide57037, false),
        (dash, Profile::Guide57037, true),
        (bash, Profile::Guide57037, true),
    ] {
        let desk = HostWithRole::of(&stock(), profile, takes_all);
        let mut plan = desk.plan();
        // The script leaves TuneD's profile alone: only lowlat could restore it.
        plan.changes.retain(|change| change.settings != ["service.tuned.profile"]);
        let script = &desk.files("shell")[0].text;
        let tree = tree_of(&desk, &plan);
        let before = tree.places();

        let output = tree.run(shell, script, "show");
        assert_success(&output);
        assert!(tree.places() == before, "{shell}: `show` changes nothing");

        let output = tree.run(shell, script, "apply");
        let said = common::text(&output.stdout) + &common::text(&output.stderr);
        assert!(output.status.success(), "{shell} {profile}: {said}");
        let mut checked = 0;
        for change in &plan.changes {
            let Some(shows) = tree.shows(&change.target) else { continue };
            assert_eq!(shows, change.after, "{shell} {profile}: {:?}\n{said}", change.target);
            checked += 1;
        }
        assert!(checked + 1 >= plan.changes.len(), "all but the command line: {checked}");
        let grub = tree.read("/boot/grub/grub.cfg");
        let tokens = plan.changes.iter().filter_map(|change| match &change.target {
            Target::CommandLine { tokens } => Some(tokens),
            _ => None,
        });
        for token in tokens.flatten() {
            let value = token.value.as_deref().expect("nothing is taken off a stock line");
            let word = if value.is_empty() { token.name.clone() } else { format!("{}={value}", token.name) };
            assert!(grub.split_whitespace().any(|found| found == word), "{word}: {grub}");
        }

        let applied = tree.places();
        let output = tree.run(shell, script, "apply");
        assert_success(&output);
        assert!(tree.places() == applied, "{shell}: a second `apply` changes nothing");

        let output = tree.run(shell, script, "undo");
        assert_success(&output);
        differ(&before, &tree.places(), &format!("{shell} {profile}"));
    }
}

/// Says where two trees differ.
#[track_caller]
pub fn differ(before: &Places, after: &Places, what: &str) {
    let names = before.keys().chain(after.keys());
    let differing: Vec<_> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
    assert!(differing.is_empty(), "{what}: {differing:?}");
}

#[test]
fn what_others_changed_since_stays_and_is_named() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    for shell in SHELLS {
        let tree = tree_of(&desk, &desk.plan());
        let before = tree.places();
        assert_success(&tree.run(shell, script, "apply"));
        tree.write("/proc/sys/vm/swappiness", "42\n");
        let file = "/etc/sysctl.d/99-zz-lowlat.conf";
        let ours = tree.read(file);
        tree.write(file, "mine\n");
        let output = tree.run(shell, script, "undo");
        let said = common::text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("/proc/sys/vm/swappiness: not restored: it was 30, this script set 10, and something changed it to 42"), "{said}");
        assert!(said.contains("99-zz-lowlat.conf: not restored: it was changed since"), "{said}");
        assert_eq!((tree.read("/proc/sys/vm/swappiness"), tree.read(file)), ("42\n".into(), "mine\n".into()));
        // Without these conflicts, the remaining records are undone.
        tree.write("/proc/sys/vm/swappiness", "10\n");
        tree.write(file, &ours);
        assert_success(&tree.run(shell, script, "undo"));
        differ(&before, &tree.places(), shell);
        let output = tree.run(shell, script, "undo");
        assert!(common::text(&output.stdout).contains("Nothing to undo"), "a second undo");
    }
}

/// The kernel sets a limit in bytes to 0 when that in percent is written, and the other way round.
#[test]
fn a_limit_in_bytes_rules_again_after_undo() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let [ratio, bytes] = ["ratio", "bytes"].map(|end| format!("/proc/sys/vm/dirty_{end}"));
    let background_bytes = "/proc/sys/vm/dirty_background_bytes";
    for shell in SHELLS {
        let tree = tree_of(&desk, &desk.plan());
        for (path, text) in [
            (ratio.as_str(), "0\n"),
            (&bytes, "1073741824\n"),
            ("/proc/sys/vm/dirty_background_ratio", "0\n"),
            (background_bytes, "536870912\n"),
        ] {
            tree.write(path, text);
        }
        let before = tree.places();
        assert_success(&tree.run(shell, script, "apply"));
        assert_eq!(tree.read(&ratio), "10\n", "{shell}");
        // As the kernel does.
        tree.write(&bytes, "0\n");
        tree.write(background_bytes, "0\n");
        for (in_percent, in_bytes, told) in [
            (
                "20\n",
                "0\n",
                "dirty_ratio: not restored: it was 0, this script set 10, and something changed it to 20",
            ),
            (
                "0\n",
                "4096\n",
                "dirty_bytes: not restored: it was 1073741824, this script set /proc/sys/vm/dirty_ratio to 10",
            ),
        ] {
            tree.write(&ratio, in_percent);
            tree.write(&bytes, in_bytes);
            let output = tree.run(shell, script, "undo");
            let said = common::text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{shell}: {said}");
            assert!(said.contains(told), "{shell}: {said}");
            assert_eq!((tree.read(&ratio), tree.read(&bytes)), (in_percent.into(), in_bytes.into()));
        }
        tree.write(&ratio, "10\n");
        tree.write(&bytes, "0\n");
        assert_success(&tree.run(shell, script, "undo"));
        differ(&before, &tree.places(), shell);
    }
}

/// The kernel returns a sysctl to the first read only, and some shells read one byte at a time.
#[test]
fn a_sysctl_of_the_running_kernel_is_read_whole() {
    let path = "/proc/sys/vm/max_map_count";
    let Ok(expected) = fs::read_to_string(path) else {
        eprintln!("skipped: {path} cannot be read here");
        return;
    };
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let (machinery, _) = script.split_once("\nmode=").expect("the script's last part");
    for shell in SHELLS {
        let asking = format!("{machinery}\npresent {path} && printf %s \"$now\"\n");
        let output = Command::new(shell).args(["-c", &asking]).output().expect("a shell");
        assert_eq!(common::text(&output.stdout), expected.trim_end(), "{shell}");
    }
}

#[test]
fn an_interrupt_that_irqbalance_moved_is_left_to_it() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let plan = desk.plan();
    let irq = plan.changes.iter().find_map(|change| match change.target {
        Target::IrqAffinity { irq, .. } if change.after == "0,8" => Some(irq),
        _ => None,
    });
    let file = format!("/proc/irq/{}/smp_affinity_list", irq.expect("an interrupt for both"));
    for shell in SHELLS {
        let tree = tree_of(&desk, &plan);
        let service = "services/irqbalance.service";
        assert_success(&tree.run(shell, script, "apply"));
        let state = tree.read(service);
        tree.write(&file, "8\n");
        tree.write(service, "inactive, disabled\n");
        let output = tree.run(shell, script, "undo");
        assert_eq!(output.status.code(), Some(1), "{shell}: a hand has moved it");
        assert!(common::text(&output.stderr).contains("something changed it"), "{shell}");
        tree.write(service, &state);
        let output = tree.run(shell, script, "undo");
        assert_success(&output);
        assert!(common::text(&output.stdout).contains(&format!("moved by irqbalance: {file}")), "{shell}");
        assert_eq!(tree.read(&file), "8\n");
    }
}

#[test]
fn an_apply_that_was_killed_is_taken_back() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    for shell in SHELLS {
        let tree = tree_of(&desk, &desk.plan());
        let before = tree.places();
        // The first call of taskset kills the script that calls it.
        tree.write("kill-at", "");
        assert_eq!(tree.run(shell, script, "apply").status.code(), None, "killed");
        assert_eq!(tree.read("/proc/sys/vm/swappiness"), "10\n");
        assert_success(&tree.run(shell, script, "undo"));
        differ(&before, &tree.places(), shell);
    }
}

#[test]
fn values_of_an_earlier_boot_are_not_restored() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    for shell in SHELLS {
        let tree = tree_of(&desk, &desk.plan());
        assert_success(&tree.run(shell, script, "apply"));
        tree.write("/proc/sys/kernel/random/boot_id", "22222222-2222-4222-8222-222222222222\n");
        assert_success(&tree.run(shell, script, "undo"));
        assert_eq!(tree.read("/proc/sys/vm/swappiness"), "10\n", "the kernel of another boot set it");
        assert!(!tree.path("/etc/sysctl.d/99-zz-lowlat.conf").exists(), "files outlive a boot");
        assert!(!tree.path("/var/lib/lowlat-export").exists());
    }
}

#[test]
fn another_host_and_another_plan_are_refused() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let tree = tree_of(&desk, &desk.plan());
    let before = tree.places();
    tree.write("/sys/devices/system/cpu/online", "0-7\n");
    let output = tree.run("dash", script, "apply");
    assert_eq!(output.status.code(), Some(2));
    assert!(common::text(&output.stderr).contains("online CPUs 0-15, and this one has 0-7"));
    tree.write("/sys/devices/system/cpu/online", "0-15\n");
    differ(&before, &tree.places(), "refused");
    assert_success(&tree.run("dash", script, "apply"));
    let other = &HostWithRole::of(&stock(), Profile::Guide57037, false).files("shell")[0].text;
    let output = tree.run("dash", other, "apply");
    assert_eq!(output.status.code(), Some(2));
    assert!(common::text(&output.stderr).contains("run undo of that plan's script first"));
    assert_eq!(tree.run("dash", script, "nonsense").status.code(), Some(2));
}

#[test]
fn the_service_s_script_starts_and_stops_without_a_trace() {
    for (shell, takes_all) in SHELLS.into_iter().zip([false, true]) {
        let desk = HostWithRole::of(&stock(), Profile::Guide57037, takes_all);
        let files = desk.files("systemd");
        let script = find(&files, "oneshot_script.sh");
        let tree = tree_of(&desk, &desk.plan());
        // irqbalance is configured by its drop-in, which is installed beside the script.
        let drop_in = find(&files, "60-lowlat.conf");
        tree.write("etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=1-7,9-15\n");
        assert!(drop_in.contains("IRQBALANCE_BANNED_CPULIST=1-7,9-15"));
        let before = tree.places();
        let output = tree.run(shell, script, "start");
        assert_success(&output);
        assert_eq!(tree.read("/proc/sys/vm/stat_interval"), "3600\n");
        assert_eq!(tree.read("/proc/irq/default_smp_affinity"), "101\n");
        for irq in fs::read_dir(tree.path("/proc/irq")).expect("interrupts").flatten() {
            let list = fs::read_to_string(irq.path().join("smp_affinity_list")).unwrap_or_default();
            assert!(matches!(list.trim(), "" | "0" | "8" | "0,8"), "{}: {list}", irq.path().display());
        }
        let stopped = tree.read("/services/dbus.service").starts_with("inactive");
        assert_eq!(stopped, takes_all);
        assert!(tree.read("/services/tuned.service").starts_with("active"), "TuneD is never stopped");
        let started = tree.places();
        assert_success(&tree.run(shell, script, "start"));
        assert!(tree.places() == started, "{shell}: a second start changes nothing");
        assert_success(&tree.run(shell, script, "stop"));
        differ(&before, &tree.places(), shell);
    }
}
