//! Units that keep a plan in force, as steps of the undo log.

use super::{FlowError, Site};
use crate::{
    ROLE_FILE,
    units::{self, Unit},
};
use lowlat_host::cmdline;
use lowlat_plan::{Plan, spell};
use lowlat_settings::change::BootToken;
use lowlat_undo::{FileState, State, TargetSpec, UndoLog, UndoStep};
use std::{collections::BTreeSet, os::unix::fs::MetadataExt, path::Path};

/// Directories from which nothing should run at boot: those of users, and those that are emptied.
const UNFIT: [&str; 8] = ["/home", "/root", "/tmp", "/var/tmp", "/run", "/dev", "/mnt", "/media"];

/// The path of lowlat's binary for units, or why they cannot use it.
/// It is not copied automatically: no package would keep the copy up to date.
pub(super) fn lowlat(site: &Site) -> Result<String, String> {
    let Some(path) = &site.lowlat else {
        return Err("lowlat is not installed there; copy it to /usr/local/sbin/lowlat".to_owned());
    };
    let shown = path.display().to_string();
    let remedy = format!(
        "install it with `sudo install -o root -g root -m 755 {shown} /usr/local/sbin/lowlat` and run the installed \
         one, or pass --no-persist"
    );
    if UNFIT.iter().any(|folder| path.starts_with(folder)) {
        return Err(format!("a service must not run {shown} at each boot; {remedy}"));
    }
    let real = site.real(&shown);
    let is_safe = |path: &Path| path.metadata().is_ok_and(|meta| meta.uid() == 0 && meta.mode() & 0o022 == 0);
    let is_root_s = is_safe(&real) && real.parent().is_some_and(is_safe);
    if site.is_live() && !is_root_s {
        return Err(format!(
            "other users than root can change {shown} or its directory, and the service would run it as root; \
             {remedy}"
        ));
    }
    Ok(shown)
}

/// The steps that write and enable units, and install a role file.
pub(super) fn steps(
    log: &UndoLog,
    units: &[Unit],
    role_file: Option<&str>,
) -> Result<Vec<UndoStep>, FlowError> {
    let mut steps = Vec::new();
    let units_text = units.iter().map(|unit| (units::path(unit.name), unit.text.as_str()));
    for (path, text) in units_text.chain(role_file.map(|text| (ROLE_FILE.to_owned(), text))) {
        let new = State::File(FileState::of_root(text.as_bytes(), 0o644));
        steps.push(log.step(TargetSpec::file(path), new)?);
    }
    for unit in units {
        for by in &unit.wanted_by {
            let new = State::Link { to: units::path(unit.name), uid: 0, gid: 0, mtime: None, context: None };
            steps.push(log.step(TargetSpec::file(units::link_path(unit.name, by)), new)?);
        }
    }
    Ok(steps)
}

/// Records the unit files of which the service manager must be notified after the rollback, so that the next
/// rollback does it if this one is killed. Returns those that the previous rollback did not report. A
/// failure to record goes into `notes` and is no error.
pub(super) fn expect_telling<'a>(
    site: &Site,
    paths: impl Iterator<Item = &'a str>,
    notes: &mut Vec<String>,
) -> BTreeSet<String> {
    let earlier = site.state.untold().unwrap_or_else(|error| {
        notes.push(error.to_string());
        BTreeSet::new()
    });
    let mut all = earlier.clone();
    all.extend(paths.filter(|path| path.starts_with(units::DIRECTORY)).map(str::to_owned));
    if all != earlier
        && let Err(error) = site.state.put_untold(&all)
    {
        notes.push(error.to_string());
    }
    earlier
}

/// Notifies the service manager of changed units: reloads them, and restarts units with changed drop-ins.
/// Returns its errors as notes, because the files are correct and the next boot reads them.
pub(super) fn tell_manager<'a>(site: &Site, paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let in_folder: Vec<&str> =
        paths.filter_map(|path| path.strip_prefix(units::DIRECTORY)?.strip_prefix('/')).collect();
    let Some(manager) = site.manager.as_ref().filter(|_| !in_folder.is_empty()) else { return Vec::new() };
    let mut notes = Vec::new();
    if let Err(error) = manager.daemon_reload() {
        notes.push(format!("systemd did not reload its units: {error}"));
    }
    let mut restarted: Vec<&str> = Vec::new();
    for unit in in_folder.iter().filter_map(|path| path.split_once(".d/").map(|(unit, _)| unit)) {
        if restarted.contains(&unit) {
            continue;
        }
        restarted.push(unit);
        if let Err(error) = manager.restart(unit) {
            notes.push(format!("{unit} was not restarted and keeps its old settings: {error}"));
        }
    }
    notes
}

/// Notes on the entries that a complete rollback does not change because `is_known` returns false for their
/// path.
pub(super) fn notes_on_later_kernels(
    site: &Site,
    plan: &Plan,
    is_known: impl Fn(&str) -> bool,
) -> Vec<String> {
    let words: Vec<String> = plan.boot_tokens().unwrap_or_default().iter().filter_map(brought).collect();
    let Ok(loader) = (site.detect)(&site.root) else { return Vec::new() };
    let of_later = loader.entry_lines(&site.root).into_iter().filter(|line| !is_known(&line.path));
    of_later
        .filter_map(|line| {
            let kept: Vec<&str> =
                cmdline::split(&line.options).into_iter().filter(|word| words.iter().any(|w| w == word)).collect();
            (!kept.is_empty()).then(|| {
                format!(
                    "{} belongs to a kernel installed after the plan, and still has its parameters. Remove {} with \
                     an editor or with `grubby --update-kernel=IMAGE --remove-args=…`.",
                    line.path,
                    kept.join(" ")
                )
            })
        })
        .collect()
}

/// The word that the plan added to the line; none if it was present before, or was removed.
fn brought(token: &BootToken) -> Option<String> {
    let word = spell(token)?;
    let stood = token.before.as_deref().is_some_and(|before| cmdline::split(before).contains(&word.as_str()));
    (!stood).then_some(word)
}
