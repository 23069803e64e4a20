//! Merges a plan with the one in force.

use super::{Plan, boot_line};
use lowlat_host::{
    Reading,
    cmdline::{CommandLine, same_name},
};
use lowlat_settings::change::{BootToken, Change, Target};
use std::mem::discriminant;

impl Plan {
    /// The plan in force after `above` is applied on top of this one. Of two changes of one target the upper
    /// one wins, separately for each parameter of the command line and each sysctl. A plan made while this
    /// one is in force contains only what is missing, so it cannot replace this one. If it adds nothing,
    /// this plan stays in force, with the upper one's role.
    #[must_use]
    pub fn with_above(&self, above: &Self) -> Self {
        let mut changes = self.changes.clone();
        for change in &above.changes {
            let below = changes.iter_mut().find(|below| is_same_thing(&below.target, &change.target));
            match below {
                Some(below) => lay_over(below, change),
                None => changes.push(change.clone()),
            }
        }
        let is_new = changes.len() != self.changes.len()
            || changes.iter().zip(&self.changes).any(|(new, old)| !asks_the_same(new, old));
        if is_new {
            return Self { changes, ..above.clone() };
        }
        let (housekeeping, isolated) = (above.housekeeping.clone(), above.isolated.clone());
        Self { profile: above.profile, housekeeping, isolated, role: above.role.clone(), ..self.clone() }
    }
}

/// True if two changes have the same target. Numbers of interrupts and threads differ between boots, so these are
/// compared by name.
fn is_same_thing(a: &Target, b: &Target) -> bool {
    let is_line = |target: &Target| matches!(target, Target::CommandLine { .. });
    let are_one = || match (a.kind().lasting(), b.kind().lasting()) {
        (Some(a), Some(b)) => a.name == b.name && a.is_unique,
        _ => false,
    };
    a == b || is_line(a) && is_line(b) || discriminant(a) == discriminant(b) && are_one()
}

fn asks_the_same(a: &Change, b: &Change) -> bool {
    let tokens = |target: &Target| match target {
        Target::CommandLine { tokens } => {
            tokens.iter().map(|token| (token.name.clone(), token.value.clone())).collect()
        }
        _ => Vec::new(),
    };
    // Other tools may have changed the line since; its parameters identify the request.
    let is_line = matches!(a.target, Target::CommandLine { .. });
    is_same_thing(&a.target, &b.target)
        && tokens(&a.target) == tokens(&b.target)
        && (is_line || a.after == b.after)
}

/// Merges a change into an earlier one of the same target.
fn lay_over(below: &mut Change, above: &Change) {
    let before = below.before.clone();
    let merged = match (&below.target, &above.target) {
        (Target::CommandLine { tokens: old }, Target::CommandLine { tokens: new }) => {
            let tokens = merge_tokens(old, new);
            let line = CommandLine::parse(above.before.text());
            let mut settings = below.settings.clone();
            settings.extend(above.settings.iter().filter(|id| !below.settings.contains(id)).cloned());
            Change {
                after: boot_line::merge(&line, &tokens),
                before: above.before.clone(),
                settings,
                target: Target::CommandLine { tokens },
                ..above.clone()
            }
        }
        (Target::OwnedFile { path }, Target::OwnedFile { .. })
            if has_keys(path)
                && sections(&above.after).all(|name| sections(&below.after).any(|n| n == name)) =>
        {
            Change { after: merge_keys(&below.after, &above.after), before, ..above.clone() }
        }
        _ => Change { before: known_or(before, above), ..above.clone() },
    };
    *below = merged;
}

/// True if a file owned by lowlat consists of keys and values.
fn has_keys(path: &str) -> bool {
    path.starts_with("/etc/sysctl.d/") || path.starts_with("/etc/tuned/")
}

/// The section headings of a text, such as "\[main\]".
fn sections(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| line.starts_with('['))
}

/// The lower plan's old value, or the upper one's if that is unknown.
fn known_or(before: Reading<String>, above: &Change) -> Reading<String> {
    if before.is_known() || before.is_absent() { before } else { above.before.clone() }
}

fn merge_tokens(old: &[BootToken], new: &[BootToken]) -> Vec<BootToken> {
    let mut tokens = old.to_vec();
    for token in new {
        match tokens.iter_mut().find(|below| same_name(&below.name, &token.name)) {
            Some(below) => {
                let before = below.before.clone();
                *below = BootToken { before, ..token.clone() };
            }
            None => tokens.push(token.clone()),
        }
    }
    tokens
}

/// The lines of the lower text with the upper one's values, followed by further keys of the upper one.
fn merge_keys(old: &str, new: &str) -> String {
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    let of_new = |wanted: &str| new.lines().find(|line| key(line).as_deref() == Some(wanted));
    let mut lines: Vec<String> =
        old.lines().map(|line| key(line).and_then(|key| of_new(&key)).unwrap_or(line).to_owned()).collect();
    let keys: Vec<String> = lines.iter().filter_map(|line| key(line)).collect();
    lines.extend(
        new.lines().filter(|line| key(line).is_some_and(|key| !keys.contains(&key))).map(str::to_owned),
    );
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_settings::{Risk, change::Moment};

    fn change(target: Target, before: &str, after: &str) -> Change {
        Change {
            settings: vec!["a.setting".into()],
            layer: "sysctl".into(),
            target,
            before: Reading::Known(before.into()),
            after: after.into(),
            moment: Moment::NowAndAtBoot,
            reason: String::new(),
            cost: String::new(),
            risk: Risk::None,
            sources: Vec::new(),
        }
    }

    fn plan(changes: Vec<Change>) -> Plan {
        Plan {
            document: Plan::DOCUMENT.into(),
            schema_version: Plan::SCHEMA_VERSION,
            lowlat_version: "0".into(),
            profile: lowlat_host::Profile::Trading,
            host: super::super::HostMark::default(),
            boot_id: Reading::Absent,
            housekeeping: lowlat_host::CpuSet::of(0),
            isolated: lowlat_host::CpuSet::of(1),
            role: None,
            changes,
            left_out: Vec::new(),
            warnings: Vec::new(),
            unsupported: None,
            hindrances: Vec::new(),
        }
    }

    fn sysctl(key: &str, before: &str, after: &str) -> Change {
        change(Target::Sysctl { key: key.into() }, before, after)
    }

    fn line(before: &str, tokens: &[(&str, &str)]) -> Change {
        let tokens: Vec<BootToken> = tokens
            .iter()
            .map(|(name, value)| BootToken {
                setting: format!("boot.{name}"),
                name: (*name).into(),
                value: Some((*value).into()),
                before: None,
            })
            .collect();
        let after = boot_line::merge(&CommandLine::parse(before), &tokens);
        change(Target::CommandLine { tokens }, before, &after)
    }

    #[test]
    fn what_is_in_force_and_still_asked_for_is_the_same_plan() {
        let below =
            plan(vec![sysctl("a", "0", "1"), line("ro", &[("nohz_full", "1-7"), ("skew_tick", "1")])]);
        let above = plan(vec![line("ro", &[("skew_tick", "1")])]);
        assert_eq!(below.with_above(&above), below);
        assert_eq!(below.with_above(&plan(Vec::new())).id(), below.id());
    }

    #[test]
    fn what_is_new_comes_on_top_and_what_was_before_both_is_kept() {
        let below = plan(vec![sysctl("a", "0", "1"), line("ro", &[("nohz_full", "1-7")])]);
        let above =
            plan(vec![sysctl("a", "1", "2"), sysctl("b", "0", "1"), line("ro", &[("nohz_full", "2-7")])]);
        let both = below.with_above(&above);
        assert_ne!(both.id(), below.id());
        let found: Vec<_> = both.changes.iter().map(|c| (c.before.text(), c.after.as_str())).collect();
        assert_eq!(found, [("0", "2"), ("ro", "ro nohz_full=2-7"), ("0", "1")]);
        assert_eq!(both.with_above(&above), both);
    }

    #[test]
    fn sysctls_of_both_stay_in_the_file() {
        let file = |text: &str| {
            plan(vec![change(Target::OwnedFile { path: "/etc/sysctl.d/99-zz-lowlat.conf".into() }, "", text)])
        };
        let both = file("# by\na = 1\nb = 1\n").with_above(&file("# by\nc = 1\nb = 2\n"));
        assert_eq!(both.changes[0].after, "# by\na = 1\nb = 2\nc = 1\n");
    }

    #[test]
    fn a_profile_of_tuned_keeps_what_is_in_effect_by_now() {
        let file = |text: &str| {
            plan(vec![change(Target::OwnedFile { path: "/etc/tuned/lowlat/tuned.conf".into() }, "", text)])
        };
        let below = file("[main]\ninclude=x\n\n[sysctl]\na=1\n");
        assert_eq!(below.with_above(&file("[main]\ninclude=x\n")), below);
        // An upper text with a heading that the lower one lacks cannot be merged line by line.
        let upper = "[main]\ninclude=x\n\n[sysctl]\na=1\n";
        assert_eq!(file("[main]\ninclude=x\n").with_above(&file(upper)).changes[0].after, upper);
    }
}
