//! Hosts of each boot loader, as trees of files.

mod debian;
mod grub_emu;
mod others;
mod real_grub;
mod red_hat;
mod shell;
mod suse;
mod systemd_boot;
mod undo;
mod unified_image;

use super::{BootLoader, FileChange, detect};
use crate::{Outcome, Programs};
use lowlat_host_run::Root;
use lowlat_plan::boot_files::grubenv::GrubEnv;
use lowlat_settings::change::BootToken;
use lowlat_undo::State;
use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};
use tempfile::TempDir;

/// The parameters that the tests' plan sets, as spelled on the line.
const NEW: &str = "isolcpus=managed_irq,domain,1-7,9-15 nohz_full=1-7,9-15 rcu_nocb_poll";

fn token(name: &str, value: Option<&str>) -> BootToken {
    let value = value.map(str::to_owned);
    BootToken { setting: format!("boot.{name}"), name: name.into(), value, before: None }
}

fn plan() -> Vec<BootToken> {
    vec![
        token("isolcpus", Some("managed_irq,domain,1-7,9-15")),
        token("nohz_full", Some("1-7,9-15")),
        token("nohz", None),
        token("rcu_nocb_poll", Some("")),
    ]
}

/// A tree of a host's files.
#[derive(Debug)]
struct Host {
    dir: TempDir,
}

impl Host {
    fn new(files: &[(&str, &str)]) -> Self {
        let host = Self { dir: TempDir::new().unwrap() };
        host.put("/proc/version", "Linux");
        for (path, text) in files {
            host.put(path, text);
        }
        host
    }

    fn place(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let place = self.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.place(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        let place = self.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(to, place).unwrap();
    }

    fn efi_variable(&self, name: &str, value: &str) {
        let units: Vec<u8> = value.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let path = format!("/sys/firmware/efi/efivars/{name}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f");
        self.put(&path, [&[6, 0, 0, 0], units.as_slice()].concat());
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.place(path)).unwrap()
    }

    fn root(&self) -> Root {
        Root::open(self.dir.path()).unwrap()
    }

    fn loader(&self) -> Box<dyn BootLoader> {
        detect(&self.root()).unwrap()
    }

    /// Writes all changes. Returns the files whose content differs.
    fn apply(&self, changes: &[FileChange]) -> Vec<String> {
        let mut written = Vec::new();
        for change in changes {
            let place = self.place(&change.path);
            match &change.new {
                State::Absent => {
                    fs::remove_file(place).unwrap();
                    written.push(format!("{} goes", change.path));
                }
                State::Value(value) => {
                    let before = fs::read(&place).unwrap();
                    let env = GrubEnv::parse(&before).unwrap();
                    let bytes = env.with(change.variable.unwrap(), value).unwrap();
                    if bytes != before {
                        written.push(change.path.clone());
                    }
                    fs::write(place, bytes).unwrap();
                }
                State::File(file) => {
                    if fs::read(&place).ok().as_ref() != Some(&file.bytes) {
                        written.push(change.path.clone());
                    }
                    self.put(&change.path, &file.bytes);
                    self.chmod(&change.path, file.mode);
                }
                State::Link { .. } => panic!("{}", change.new),
            }
        }
        written
    }

    /// Applies the sources, checks that applying them again changes nothing, and returns the changed files.
    fn apply_sources(&self, tokens: &[BootToken]) -> Vec<String> {
        let changed = self.apply(&self.loader().sources(&self.root(), tokens).unwrap());
        let again = self.apply(&self.loader().sources(&self.root(), tokens).unwrap());
        assert_eq!(again, [""; 0], "a second time");
        changed
    }

    /// The kernel's line at the next boot.
    fn next(&self) -> String {
        self.loader().next_boot_line(&self.root()).into_known().unwrap()
    }

    fn refusal(&self, tokens: &[BootToken]) -> String {
        self.loader().sources(&self.root(), tokens).unwrap_err().to_string()
    }
}

/// Programs with a predefined output.
#[derive(Debug, Default)]
struct Said {
    stdout: String,
    fails: bool,
    checker_fails: bool,
    expected: &'static str,
}

impl Programs for Said {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Outcome> {
        assert_eq!((program, arguments), (self.expected, &[][..]));
        let stderr =
            "Generating grub configuration file ...\n/etc/default/grub: 3: Syntax error\n".to_owned();
        Ok(Outcome { is_success: !self.fails, stdout: self.stdout.clone().into_bytes(), stderr })
    }

    fn run_with_input(&self, program: &str, _: &[&str], input: &[u8]) -> io::Result<Outcome> {
        assert_eq!(program, self.expected.replace("mkconfig", "script-check"));
        assert_eq!(input, self.stdout.as_bytes());
        Ok(Outcome {
            is_success: !self.checker_fails,
            stdout: Vec::new(),
            stderr: "syntax error\n".to_owned(),
        })
    }
}

/// Every parameter once, as the plan has it.
fn assert_has_plan(line: &str) {
    assert_eq!(lowlat_plan::boot_files::missing(line, &plan()), [""; 0], "{line}");
}
