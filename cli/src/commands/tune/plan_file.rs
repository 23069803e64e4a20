//! Reading of saved plans.

use crate::{documents::Kind, trusted::TrustedKind};
use anyhow::Context;
use lowlat_plan::Plan;
use std::{fs::File, io::Read, path::Path};

/// Size limit of a plan file. A plan for a thousand CPUs takes a few megabytes.
const PLAN_BYTES_MAX: u64 = 256 << 20;
const TRUSTED: TrustedKind =
    TrustedKind { what: "the plan", hint: "save the plan with `lowlat tune plan --out FILE`" };

/// Reads a plan for inspection.
pub fn read(path: &Path) -> anyhow::Result<Plan> {
    parse(path, TRUSTED.open(path)?)
}

/// Reads a plan for an apply. Only its owner may be able to write to it, and the owner must be root, the caller or, under
/// sudo, the user who ran sudo.
pub fn read_trusted(path: &Path) -> anyhow::Result<Plan> {
    let file = TRUSTED.open(path)?;
    let own = rustix::process::geteuid().as_raw();
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok()).filter(|_| own == 0);
    TRUSTED.check_owners(path, &file, |uid| uid == 0 || uid == own || Some(uid) == caller)?;
    parse(path, file)
}

fn parse(path: &Path, file: File) -> anyhow::Result<Plan> {
    let shown = path.display();
    let mut bytes = Vec::new();
    file.take(PLAN_BYTES_MAX)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read the plan {shown}"))?;
    let kind = Kind {
        document: Plan::DOCUMENT,
        version: Plan::SCHEMA_VERSION,
        is: "a plan of lowlat",
        hint: "save one with `lowlat tune plan --out FILE`",
    };
    kind.parse(path, &bytes)
}
