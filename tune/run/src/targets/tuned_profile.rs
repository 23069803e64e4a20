//! TuneD's active profile. It survives a reboot: TuneD applies it again when it starts.
//! The state is the content of TuneD's two files, `/etc/tuned/active_profile` and `/etc/tuned/profile_mode`:
//!
//! | text | meaning |
//! |---|---|
//! | `virtual-guest auto` | that profile, chosen automatically by TuneD |
//! | `lowlat manual` | that profile, chosen by a user; in a plan, `lowlat` alone means the same |
//! | `balanced unset` | that profile, without a recorded mode |
//! | `off manual` | no profile |
//!
//! It is absent without TuneD. A running daemon switches the profile itself, so that it rolls the old one
//! back first; otherwise the files are written, which it reads when it starts.

use super::{failed, failed_or_refused, is_live_or};
use lowlat_host_run::tuned::{Tuned, TunedControl, TunedError};
use lowlat_undo::{Comparison, FileState, HostError, State, Target, TargetSpec, Writer};

const PROFILE: &str = "/etc/tuned/active_profile";
const MODE: &str = "/etc/tuned/profile_mode";
const MAIN: &str = "/etc/tuned/tuned-main.conf";
/// No profile.
const OFF: &str = "off";
/// Origins of the profile's choice.
const AUTO: &str = "auto";
const MANUAL: &str = "manual";
const UNSET: &str = "unset";

/// TuneD's active profile; the name is always "tuned".
#[derive(Debug)]
pub struct TunedProfile<C = Tuned> {
    control: C,
}

impl TunedProfile {
    pub const KIND: &str = "tuned-profile";
    pub const NAME: &str = "tuned";

    pub fn live() -> Self {
        Self { control: Tuned::live() }
    }

    /// The target, with its comparison.
    pub fn spec() -> TargetSpec {
        TargetSpec { kind: Self::KIND.into(), name: Self::NAME.into(), comparison: Comparison::Profile }
    }
}

impl<C: TunedControl> TunedProfile<C> {
    fn check(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        is_live_or(self.control.is_live(), writer, spec)?;
        if spec.name == TunedProfile::NAME {
            return Ok(());
        }
        Err(failed("find TuneD", &spec.name, "expected the name \"tuned\"; make a new plan"))
    }

    fn ask(&self, wanted: &Wanted) -> Result<(), TunedError> {
        if wanted.profile == OFF {
            return self.control.disable();
        }
        if wanted.mode == AUTO {
            self.control.auto_profile()?;
            // The recommended profile may have changed since.
            if self.control.active_profile()? == wanted.profile {
                return Ok(());
            }
        }
        self.control.switch_profile(&wanted.profile)
    }
}

impl<C: TunedControl> Target for TunedProfile<C> {
    fn kind(&self) -> &'static str {
        TunedProfile::KIND
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        self.check(writer, spec)?;
        let text = |path| writer.read_value(path).map(State::into_value);
        let (profile, mode) = (text(PROFILE)?, text(MODE)?.unwrap_or_default());
        if profile.is_none() && writer.read_value(MAIN)? == State::Absent {
            return Ok(State::Absent);
        }
        let words: Vec<String> = profile.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        let profile = if words.is_empty() { OFF.to_owned() } else { words.join(" ") };
        let mode = match mode.trim() {
            "" => UNSET,
            known @ (AUTO | MANUAL) => known,
            other => {
                let why =
                    format!("found {other:?}, expected \"auto\", \"manual\" or nothing; correct the file");
                return Err(failed("read TuneD's mode", MODE, why));
            }
        };
        Ok(State::Value(format!("{profile} {mode}")))
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        self.check(writer, spec)?;
        let text = spec.wanted_value(to)?;
        let wanted = Wanted::parse(text).ok_or_else(|| {
            let why =
                format!("found {text:?}, expected a profile and its mode such as \"virtual-guest auto\"");
            failed("switch TuneD's profile", &spec.name, why)
        })?;
        let doing = "switch TuneD's profile";
        if self.control.is_running().map_err(|error| failed(doing, &spec.name, error))? {
            self.ask(&wanted).map_err(|error| {
                let is_refusal = matches!(error, TunedError::Refused { .. });
                failed_or_refused(is_refusal, doing, &spec.name, error)
            })?;
        }
        // Files that the running daemon has written are not written again.
        let profile = if wanted.profile == OFF { String::new() } else { format!("{}\n", wanted.profile) };
        let mode = (wanted.mode != UNSET).then(|| format!("{}\n", wanted.mode));
        set_file(writer, PROFILE, Some(profile))?;
        set_file(writer, MODE, mode)
    }
}

/// Makes the file contain `text`, or removes it; owner and mode stay. Does nothing if the content is correct.
fn set_file(writer: &Writer, path: &str, text: Option<String>) -> Result<(), HostError> {
    let to = match (writer.read_file(path)?, text) {
        (State::Absent, None) => return Ok(()),
        (_, None) => State::Absent,
        (State::File(file), Some(text)) if file.bytes.trim_ascii() == text.as_bytes().trim_ascii() => {
            return Ok(());
        }
        (State::File(file), Some(text)) => {
            State::File(FileState { bytes: text.into_bytes(), mtime: None, ..file })
        }
        (State::Absent, Some(text)) => State::File(FileState::of_root(text, 0o644)),
        (found, Some(_)) => {
            let why = format!("found {found}, expected TuneD's file; restore it, or leave this step out");
            return Err(failed("write TuneD's profile", path, why));
        }
    };
    writer.write_file(path, &to)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    profile: String,
    mode: &'static str,
}

impl Wanted {
    fn parse(text: &str) -> Option<Self> {
        // The characters that TuneD accepts in names, without the space that separates several.
        let is_name = |word: &&str| {
            word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '@'))
        };
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || !words.iter().all(is_name) {
            return None;
        }
        let mode =
            [AUTO, MANUAL, UNSET].into_iter().find(|mode| words.len() > 1 && words.last() == Some(mode));
        if mode.is_some() {
            words.pop();
        }
        Some(Self { profile: words.join(" "), mode: mode.unwrap_or(MANUAL) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_undo::{OnFailure, PrivateDirectory, UndoLog, UndoStep};
    use std::{
        fs,
        path::{Path, PathBuf},
        sync::{Arc, Mutex},
    };

    /// A model of TuneD that keeps its choice in the tree as the real one does; without a tree it is not running.
    #[derive(Debug, Clone, Default)]
    struct Fake {
        runs_in: Option<PathBuf>,
        recommended: &'static str,
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Fake {
        fn set(&self, profile: &str, mode: &str) -> Result<(), TunedError> {
            self.asked.lock().unwrap().push(format!("{profile} {mode}"));
            if profile == "missing" {
                let (doing, said) = ("switch to the profile missing".into(), "no such profile".into());
                return Err(TunedError::Refused { doing, said });
            }
            let dir = self.runs_in.as_ref().unwrap().join("etc/tuned");
            fs::write(dir.join("active_profile"), format!("{profile}\n")).unwrap();
            fs::write(dir.join("profile_mode"), format!("{mode}\n")).unwrap();
            Ok(())
        }
    }

    impl TunedControl for Fake {
        fn is_running(&self) -> Result<bool, TunedError> {
            Ok(self.runs_in.is_some())
        }

        fn active_profile(&self) -> Result<String, TunedError> {
            let path = self.runs_in.as_ref().unwrap().join("etc/tuned/active_profile");
            Ok(fs::read_to_string(path).unwrap().trim().to_owned())
        }

        fn switch_profile(&self, profile: &str) -> Result<(), TunedError> {
            self.set(profile, "manual")
        }

        fn auto_profile(&self) -> Result<(), TunedError> {
            self.set(self.recommended, "auto")
        }

        fn disable(&self) -> Result<(), TunedError> {
            self.set("", "manual")
        }

        fn is_live(&self) -> bool {
            false
        }
    }

    /// A tree with TuneD's files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("etc/tuned")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join("etc/tuned").join(name), text).unwrap();
        }
        dir
    }

    fn shown(dir: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(dir.join("etc/tuned")).unwrap().map(Result::unwrap);
        let mut files: Vec<_> = entries
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    fn apply_and_roll_back(dir: &Path, fake: &Fake, old: &str, new: &str, expected: &[(&str, &str)]) {
        let before = shown(dir);
        let log_dir = tempfile::tempdir().unwrap();
        let log = UndoLog::open(
            PrivateDirectory::create(log_dir.path(), &[]).unwrap(),
            Writer::below(dir).unwrap(),
            |_| true,
        )
        .unwrap();
        let mut log = log.with_target(Box::new(TunedProfile { control: fake.clone() }));
        let target = TunedProfile::spec();
        assert_eq!(log.present(&target).unwrap(), State::Value(old.to_owned()));
        let (id, old) = ("tuned".to_owned(), State::Value(old.to_owned()));
        let step = UndoStep { id, target, old, new: State::Value(new.to_owned()) };
        log.apply("p", &[step], OnFailure::RollBack).unwrap();
        let expected: Vec<(String, String)> =
            expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        assert_eq!(shown(dir), expected);
        let report = log.rollback_where(|_| true);
        assert!(report.is_complete(), "{report}");
        assert_eq!(shown(dir), before);
    }

    const LOWLAT: [(&str, &str); 2] = [("active_profile", "lowlat\n"), ("profile_mode", "manual\n")];

    #[test]
    fn a_daemon_that_does_not_run_finds_its_files() {
        let fake = Fake::default();
        let dir = tree(&[("active_profile", "virtual-guest\n"), ("profile_mode", "auto\n")]);
        apply_and_roll_back(dir.path(), &fake, "virtual-guest auto", "lowlat", &LOWLAT);
        let dir = tree(&[("active_profile", "a b\n")]);
        apply_and_roll_back(dir.path(), &fake, "a b unset", "lowlat manual", &LOWLAT);
        assert!(fake.asked.lock().unwrap().is_empty());
    }

    #[test]
    fn a_running_daemon_is_asked() {
        let dir = tree(&[("active_profile", "virtual-guest\n"), ("profile_mode", "auto\n")]);
        let runs_in = Some(dir.path().to_owned());
        let fake = Fake { runs_in: runs_in.clone(), recommended: "virtual-guest", ..Fake::default() };
        apply_and_roll_back(dir.path(), &fake, "virtual-guest auto", "lowlat manual", &LOWLAT);
        assert_eq!(*fake.asked.lock().unwrap(), ["lowlat manual", "virtual-guest auto"]);
        // TuneD recommends another profile by now; the old one is still restored.
        let fake = Fake { runs_in, recommended: "balanced", ..Fake::default() };
        apply_and_roll_back(dir.path(), &fake, "virtual-guest auto", "lowlat manual", &LOWLAT);
        assert_eq!(*fake.asked.lock().unwrap(), ["lowlat manual", "balanced auto", "virtual-guest manual"]);
    }

    #[test]
    fn no_profile_comes_back_too() {
        let dir = tree(&[("active_profile", ""), ("profile_mode", "manual\n"), ("tuned-main.conf", "")]);
        let fake = Fake { runs_in: Some(dir.path().to_owned()), ..Fake::default() };
        let before = shown(dir.path());
        let log_dir = tempfile::tempdir().unwrap();
        let log = UndoLog::open(
            PrivateDirectory::create(log_dir.path(), &[]).unwrap(),
            Writer::below(dir.path()).unwrap(),
            |_| true,
        )
        .unwrap();
        let mut log = log.with_target(Box::new(TunedProfile { control: fake.clone() }));
        let target = TunedProfile::spec();
        let old = log.present(&target).unwrap();
        assert_eq!(old, State::Value("off manual".into()));
        let step = UndoStep { id: "tuned".into(), target, old, new: State::Value("lowlat".into()) };
        log.apply("p", &[step], OnFailure::RollBack).unwrap();
        assert!(log.rollback_where(|_| true).is_complete());
        assert_eq!(*fake.asked.lock().unwrap(), ["lowlat manual", " manual"]);
        assert_eq!(shown(dir.path()).len(), before.len());
    }

    #[test]
    fn bad_names_states_and_files_are_told() {
        let dir = tree(&[("active_profile", "x\n"), ("profile_mode", "often\n")]);
        let writer = Writer::below(dir.path()).unwrap();
        let target =
            TunedProfile { control: Fake { runs_in: Some(dir.path().to_owned()), ..Fake::default() } };
        let spec = TunedProfile::spec();
        let error = target.read(&writer, &spec).unwrap_err().to_string();
        assert!(
            error.contains("/etc/tuned/profile_mode: cannot read TuneD's mode: found \"often\", expected"),
            "{error}"
        );
        let write =
            |text: &str| target.write(&writer, &spec, &State::Value(text.into())).unwrap_err().to_string();
        for bad in ["", " ", "../x manual", "a\u{7}b auto"] {
            assert!(write(bad).contains("expected a profile and its mode"), "{bad}");
        }
        assert!(
            write("missing manual")
                .contains("TuneD refused to switch to the profile missing: no such profile")
        );
        let other = TargetSpec { name: "x".into(), ..TunedProfile::spec() };
        assert!(
            target.read(&writer, &other).unwrap_err().to_string().contains("expected the name \"tuned\"")
        );
        assert!(matches!(target.write(&writer, &spec, &State::Absent), Err(HostError::Unfit(_))));
        let none = tree(&[]);
        assert_eq!(target.read(&Writer::below(none.path()).unwrap(), &spec).unwrap(), State::Absent);
        let error = TunedProfile::live().read(&writer, &spec).unwrap_err().to_string();
        assert!(error.contains("belongs to the running host"), "{error}");
    }
}
