//! Programs from PyPI that tests use.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Mutex, PoisonError},
};

/// Held while an environment is made: two tests want the same one.
static MAKING: Mutex<()> = Mutex::new(());

/// A virtual environment with this package ("name==version"), installed below target/ at the first run; or the reason
/// why it cannot be.
pub fn venv(name: &str, package: &str) -> Result<PathBuf, String> {
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let whole = place.join("whole");
    // Its programs contain its path.
    let wanted = format!("{package} in {}", place.display());
    if fs::read_to_string(&whole).is_ok_and(|text| text == wanted) {
        return Ok(place);
    }
    let _ = fs::remove_dir_all(&place);
    let ran = |what: &str, command: &mut Command| {
        let output: Output =
            command.stdin(Stdio::null()).output().map_err(|error| format!("{what}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let words = [output.stdout, output.stderr].concat();
        let words = String::from_utf8_lossy(&words).trim().replace('\n', " ");
        Err(format!(
            "{what}: {}",
            words.chars().rev().take(300).collect::<Vec<_>>().iter().rev().collect::<String>()
        ))
    };
    ran("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    // A registry that does not answer must not hold the tests.
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", package];
    ran("pip install", Command::new("timeout").arg("150").arg(place.join("bin/python3")).args(pip))?;
    fs::write(whole, wanted).map_err(|error| error.to_string())?;
    Ok(place)
}
