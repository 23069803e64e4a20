//! One variable of GRUB's block (grubenv) as a target of the undo log. Others write to the rest of the block: GRUB
//! itself at each boot, `grub2-set-bootflag` after a login, kernel packages, and TuneD. So only the variable is
//! compared and restored, in the block's state at that time.

use crate::targets::failed;
use lowlat_plan::boot_files::{GrubEnvFault, grubenv::GrubEnv};
use lowlat_undo::{Comparison, FileState, HostError, State, Target, TargetSpec, Writer};

/// A variable of the block; the name is the block's path, a space, and the variable's name.
#[derive(Debug)]
pub(crate) struct GrubVariable;

impl GrubVariable {
    pub(crate) const KIND: &str = "grub-variable";

    /// A variable of the block at `path` as a target.
    pub(crate) fn spec(path: &str, variable: &str) -> TargetSpec {
        let name = format!("{path} {variable}");
        TargetSpec { kind: Self::KIND.to_owned(), name, comparison: Comparison::Exact }
    }
}

/// The block's path, and the variable's name.
fn parts(spec: &TargetSpec) -> Result<(&str, &str), HostError> {
    let parts = spec.name.rsplit_once(' ').filter(|(_, variable)| !variable.is_empty());
    parts.ok_or_else(|| {
        let why = "expected the path of a block and a variable of it; make a new plan";
        failed("find GRUB's variable", &spec.name, why)
    })
}

fn of_block(path: &str, fault: &GrubEnvFault) -> HostError {
    let advice = match fault {
        GrubEnvFault::TooLarge(_) => "remove unneeded variables from it (`grub2-editenv - list`)",
        _ => "recreate it with `grub2-editenv create`, and set its variables again",
    };
    failed("use GRUB's block of variables", path, format!("{fault}; {advice}"))
}

/// The block and its file; none if it is missing.
fn block(writer: &Writer, path: &str) -> Result<Option<(GrubEnv, FileState)>, HostError> {
    match writer.read_file(path)? {
        State::Absent => Ok(None),
        State::File(file) => {
            let env = GrubEnv::parse(&file.bytes).map_err(|fault| of_block(path, &fault))?;
            Ok(Some((env, file)))
        }
        found => {
            let why = format!("found {found}, expected a file; make a new plan");
            Err(failed("use GRUB's block of variables", path, why))
        }
    }
}

impl Target for GrubVariable {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        let (path, variable) = parts(spec)?;
        let value = block(writer, path)?.and_then(|(env, _)| env.get(variable));
        Ok(value.map_or(State::Absent, State::Value))
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let (path, variable) = parts(spec)?;
        let Some((env, file)) = block(writer, path)? else {
            if *to == State::Absent {
                return Ok(());
            }
            let why = "the block is missing; create it with `grub2-editenv create`";
            return Err(failed("set GRUB's variable", &spec.name, why));
        };
        let bytes = match to {
            State::Value(value) => env.with(variable, value).map_err(|fault| of_block(path, &fault))?,
            State::Absent => env.without(variable),
            State::File(_) | State::Link { .. } => {
                return Err(HostError::wrong_state(Self::KIND, &spec.name, to));
            }
        };
        writer.write_file(path, &State::File(FileState { bytes, mtime: None, ..file }))
    }

    fn clear(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        writer.clear(parts(spec)?.0, false)
    }

    fn settle(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        writer.settle(parts(spec)?.0)
    }
}
