//! What the attacks share.
#![allow(dead_code, reason = "each module uses a part")]

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Output},
};

/// The binary under attack: the one that cargo built, unless `LOWLAT_BINARY` names another.
pub fn binary() -> PathBuf {
    std::env::var_os("LOWLAT_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_lowlat")), PathBuf::from)
}

/// Runs the binary under attack and waits for it to end.
pub fn lowlat<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    Command::new(binary()).args(arguments).output().expect("the binary starts")
}
