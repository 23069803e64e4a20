//! GRUB's menu as a file of the host: its path, the entry that boots, and a new menu from GRUB's own generator.

use super::{BootLoaderError, FileChange, error::end_of, files, is_efi};
use crate::Programs;
use lowlat_host::{Reading, cmdline::Repeat, snapshot::KNOWN_BEFORE_BOOT};
use lowlat_host_run::Root;
use lowlat_plan::boot_files::{
    entry_order::{EntryFile, Order},
    grub::{Build, Found, MenuSurroundings},
    grub_menu::GrubMenu,
    grubenv::GrubEnv,
};
use lowlat_settings::judge::first_of;
use std::io;

/// Maximum number of a generated menu's faults in an error.
const FAULTS_MAX: usize = 3;

/// The menu that GRUB reads on this host.
#[derive(Debug)]
pub(super) struct MenuFile {
    pub(super) path: String,
    /// The menu takes its entries from /boot/loader/entries.
    pub(super) has_blscfg: bool,
}

impl MenuFile {
    /// Finds the menu. On EFI it can be beside GRUB itself on the EFI partition. A file that only loads another menu (a
    /// few lines that end in `configfile`) does not count.
    pub(super) fn find(root: &Root) -> Result<Option<Self>, BootLoaderError> {
        let mut paths = Vec::new();
        if is_efi(root) {
            paths.extend(beside_grub(root));
        }
        paths.extend(["/boot/grub2/grub.cfg", "/boot/grub/grub.cfg"].map(str::to_owned));
        for path in paths {
            let Some(text) = files::text(root, &path)? else { continue };
            let menu = GrubMenu::parse(&text);
            if menu.has_blscfg || !menu.entries.is_empty() {
                return Ok(Some(Self { path, has_blscfg: menu.has_blscfg }));
            }
        }
        Ok(None)
    }

    /// "grub2" if the distribution's programs are named so, otherwise "grub".
    fn prefix(&self, root: &Root) -> &'static str {
        let is_two = self.path.starts_with("/boot/grub2/")
            || !self.path.starts_with("/boot/grub/") && root.exists("/boot/grub2");
        if is_two { "grub2" } else { "grub" }
    }

    /// The program that writes the menu.
    pub(super) fn generator(&self, root: &Root) -> String {
        format!("{}-mkconfig", self.prefix(root))
    }

    /// The command that writes the menu.
    pub(super) fn command(&self, root: &Root) -> String {
        format!("{} -o {}", self.generator(root), self.path)
    }

    /// Path of GRUB's block of variables.
    pub(super) fn grubenv(&self, root: &Root) -> String {
        let beside = self.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let paths =
            [format!("{beside}/grubenv"), "/boot/grub2/grubenv".to_owned(), "/boot/grub/grubenv".to_owned()];
        let [first, ..] = &paths;
        paths.iter().find(|path| root.exists(path)).unwrap_or(first).clone()
    }

    /// The block of variables; none if it is missing.
    pub(super) fn read_grubenv(&self, root: &Root) -> Result<Option<GrubEnv>, BootLoaderError> {
        let path = self.grubenv(root);
        let Some(bytes) = files::bytes(root, &path)? else { return Ok(None) };
        GrubEnv::parse(&bytes).map(Some).map_err(|fault| BootLoaderError::grubenv(&path, &fault))
    }

    /// The menu with the block's variables, and that block.
    pub(super) fn read(&self, root: &Root) -> Result<(GrubMenu, Option<GrubEnv>), BootLoaderError> {
        let mut menu = GrubMenu::parse(&files::text(root, &self.path)?.unwrap_or_default());
        // GRUB itself continues without a block that it cannot read.
        let env = match self.read_grubenv(root) {
            Err(BootLoaderError::File { .. }) => None,
            other => other?,
        };
        menu.set_variables(env.iter().flat_map(GrubEnv::variables));
        Ok((menu, env))
    }

    /// The line of the entry that boots next, found as GRUB does.
    pub(super) fn next_line(&self, root: &Root, entries: &[EntryFile]) -> Reading<String> {
        let menu = match files::text(root, &self.path) {
            Ok(text) => GrubMenu::parse(&text.unwrap_or_default()),
            Err(error) => return files::as_reading(Err(error)),
        };
        let directory = self.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let surroundings = MenuSurroundings {
            directory,
            read: &|path| self.find_file(root, directory, path),
            entries,
            platform: is_efi(root).then_some("efi"),
            builds: builds(root),
        };
        match menu.next_line(&surroundings) {
            Ok(line) => Reading::from_option(line),
            Err(why) => Reading::unparsable(self.path.clone(), &why, KNOWN_BEFORE_BOOT),
        }
    }

    /// Finds a path as GRUB does on the device of the menu: the host's root, or a partition for /boot.
    fn find_file(&self, root: &Root, directory: &str, path: &str) -> Found {
        let is_beside = path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
        let boot = format!("/boot{path}");
        let path = match path {
            _ if is_beside && path.ends_with("/grubenv") => &self.grubenv(root),
            _ if is_beside || root.exists(path) => path,
            _ if root.exists(&boot) => boot.as_str(),
            // The file can be in a subvolume.
            _ => return Found::NotKnown,
        };
        match root.read_bytes(path) {
            Reading::Known(bytes) => Found::File(bytes),
            Reading::Absent => Found::Missing,
            _ if root.list(path).is_known() => Found::Directory,
            _ => Found::NotKnown,
        }
    }

    /// Generates a new menu with GRUB's own program, as a change of the file. It is rejected if `faults` finds any.
    pub(super) fn generate(
        &self,
        root: &Root,
        programs: &dyn Programs,
        faults: impl Fn(&GrubMenu) -> Vec<String>,
    ) -> Result<FileChange, BootLoaderError> {
        let program = self.generator(root);
        // Without "-o" the generator writes to stdout, and nothing to the host.
        let outcome =
            programs.run(&program, &[]).map_err(|error| BootLoaderError::generator(&program, error))?;
        if !outcome.is_success {
            return Err(BootLoaderError::generator(&program, end_of(&outcome.stderr)));
        }
        let refused = |faults: String| {
            BootLoaderError::Refused(format!(
                "cannot use the menu that `{program}` generated: {faults}; check what else sets GRUB_CMDLINE_LINUX in \
                 /etc/default/grub, /etc/default/grub.d and /etc/grub.d, or roll back with `lowlat tune rollback`"
            ))
        };
        let text = str::from_utf8(&outcome.stdout).map_err(|error| refused(error.to_string()))?;
        let menu = GrubMenu::parse(text);
        let found = faults(&menu);
        if !found.is_empty() {
            return Err(refused(first_of(&found, FAULTS_MAX, ["; ", "; and "])));
        }
        let checker = format!("{}-script-check", self.prefix(root));
        match programs.run_with_input(&checker, &[], &outcome.stdout) {
            Ok(verdict) if !verdict.is_success => {
                return Err(refused(format!("{checker} reported {}", end_of(&verdict.stderr))));
            }
            // Some distributions ship it in a separate package.
            Err(error) if ![io::ErrorKind::NotFound, io::ErrorKind::Unsupported].contains(&error.kind()) => {
                return Err(BootLoaderError::generator(&checker, error));
            }
            _ => {}
        }
        Ok(files::change(root, &self.path, outcome.stdout))
    }
}

/// The builds of GRUB that the distribution can have. Red Hat's sorted as rpm does until it adopted the order of GRUB
/// 2.14.
fn builds(root: &Root) -> &'static [Build] {
    const ALL: [Build; 3] = [
        Build { is_name_first: true, order: Order::Package },
        Build { is_name_first: true, order: Order::FileName },
        Build { is_name_first: false, order: Order::FileName },
    ];
    let [red_hat @ .., other] = &ALL;
    let release = root.read("/etc/os-release");
    let is = |families: &[&str]| {
        let ids = release
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")));
        let mut words = ids.flat_map(|ids| ids.split(['"', '\'', ' ']));
        words.any(|id| families.contains(&id))
    };
    if is(&["fedora", "rhel", "centos"]) {
        red_hat
    } else if is(&["debian", "ubuntu", "arch"]) {
        std::slice::from_ref(other)
    } else {
        &ALL
    }
}

/// The menu next to GRUB on the EFI partition; of several, the one in the distribution's directory.
fn beside_grub(root: &Root) -> Option<String> {
    let paths = root.glob("/boot/efi/EFI/*/grub.cfg");
    let id = files::os_id(root);
    let directory = match id.as_str() {
        "rhel" | "ol" => "redhat",
        // "opensuse-leap", "opensuse-tumbleweed".
        id => id.split('-').next().unwrap_or(id),
    };
    let own = paths
        .iter()
        .find(|path| path.split('/').nth(4).is_some_and(|name| name.eq_ignore_ascii_case(directory)))
        .cloned();
    own.or_else(|| if let [only] = paths.as_slice() { Some(only.clone()) } else { None })
}

/// The note on parameters of the plan that TuneD also sets in GRUB's variable `tuned_params`, which follows
/// the plan's.
pub(super) fn tuned_note(
    menu: &MenuFile,
    root: &Root,
    tokens: &[lowlat_settings::change::BootToken],
) -> Option<String> {
    let (menu, env) = menu.read(root).ok()?;
    let of_env = env.and_then(|env| env.get("tuned_params"));
    let value = of_env.or_else(|| menu.variable("tuned_params").map(str::to_owned))?;
    let line = lowlat_host::cmdline::CommandLine::parse(&value);
    let standing: Vec<String> =
        tokens.iter().filter_map(|token| lowlat_plan::standing(&line, &token.name)).collect();
    if standing.is_empty() {
        return None;
    }
    let of = |rule: Repeat| {
        let of_rule = tokens.iter().filter(|token| Repeat::of(&token.name) == rule);
        of_rule.filter_map(|token| lowlat_plan::standing(&line, &token.name)).collect::<Vec<_>>().join(" ")
    };
    let rules = [Repeat::First, Repeat::Last, Repeat::Each].map(|rule| (of(rule), rule));
    let rules = rules.iter().filter(|(words, _)| !words.is_empty());
    let what_counts = rules.map(|(words, rule)| match rule {
        Repeat::First => format!("the kernel ignores {words} and uses the plan's"),
        Repeat::Last => format!("{words} wins"),
        Repeat::Each => format!("{words} applies too"),
    });
    let what_counts: Vec<String> = what_counts.collect();
    Some(format!(
        "TuneD's profile sets {} in GRUB's variable tuned_params, which follows these parameters: {}. Switch to a profile \
         that does not set them.",
        standing.join(" "),
        what_counts.join("; ")
    ))
}
