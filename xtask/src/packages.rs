//! `cargo xtask dist --packages`: packages of the static binary, and the list of what it was built from (SBOM).

use crate::run::{cargo, output, path_before, run};
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::{
    env::consts::ARCH,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::UNIX_EPOCH,
};

/// A program that makes packages, and its version.
type Tool = (&'static str, &'static str);
pub const AUDITABLE: Tool = ("cargo-auditable", "0.7.7");
const COMPONENTS: Tool = ("auditable2cdx", "0.1.0");
const DEB: Tool = ("cargo-deb", "3.8.0");
/// Folder of the packages' own files, below the source tree.
const PACKAGING: &str = "cli/packaging";
pub const AUTHORS: &str = "The lowlat authors <lowlat@localhost>";
/// The list of components, beside the binary.
const LIST: &str = "lowlat.cdx.json";

/// Makes all packages of the binary in `dist`, beside it.
pub fn make(root: &Path, dist: &Path) -> anyhow::Result<()> {
    if dist != root.join("target/dist") {
        bail!(
            "cannot make packages in {}: they take their files from target/dist\nhint: unset CARGO_TARGET_DIR",
            dist.display()
        );
    }
    if Command::new("rpmbuild").arg("--version").output().is_err() {
        bail!(
            "cannot make the RPM package: rpmbuild is missing\nhint: install rpm (Debian, Ubuntu) or rpm-build (Fedora)"
        );
    }
    texts(dist)?;
    let time = time_unix_s(root)?;
    let version = env!("CARGO_PKG_VERSION");
    write(
        &dist.join("changelog.debian"),
        &format!(
            "lowlat ({version}-1) unstable; urgency=medium\n\n  * See /usr/share/doc/lowlat/changelog.gz.\n\n -- {AUTHORS}  {}\n",
            date(&time, "%a, %d %b %Y %H:%M:%S +0000")?
        ),
    )?;
    let mut deb = cargo();
    deb.current_dir(root).env("PATH", path_with(root, DEB)?).env("SOURCE_DATE_EPOCH", &time);
    run(deb.args(["deb", "--package", "lowlat", "--no-build", "--no-strip", "--output"]).arg(dist))?;
    rpm(root, dist, version, &time)?;
    components(root, dist)?;
    let rpmlint = format!("{PACKAGING}/rpmlint.toml");
    for path in made(dist)? {
        let (linter, options): (_, &[&str]) = match path.extension().and_then(OsStr::to_str) {
            Some("deb") => ("lintian", &["--fail-on", "error,warning", "--allow-root"]),
            Some("rpm") => ("rpmlint", &["--config", &rpmlint]),
            _ => continue,
        };
        if Command::new(linter).arg("--version").output().is_err() {
            println!("{} is not checked: {linter} is not installed", path.display());
            continue;
        }
        run(Command::new(linter).current_dir(root).args(options).arg(path))?;
    }
    Ok(())
}

/// The RPM package, by rpmbuild.
fn rpm(root: &Path, dist: &Path, version: &str, time: &str) -> anyhow::Result<()> {
    let folder = dist.join("rpm");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = root.join(PACKAGING).join("lowlat.spec");
    let spec = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let entry = format!(
        "* {} {AUTHORS} - {version}-1\n- See /usr/share/doc/lowlat/CHANGELOG.md.\n",
        date(time, "%a %b %d %Y")?
    );
    let spec_with_entry = folder.join("lowlat.spec");
    write(&spec_with_entry, &(spec + &entry))?;
    let defined = [("version", version.as_ref()), ("top", root.as_os_str()), ("dist", dist.as_os_str())];
    rpmbuild(root, dist, &spec_with_entry, &defined)
}

/// Makes the RPM package of a specification in `dist`, with these macros defined, and removes what rpmbuild leaves.
pub fn rpmbuild(root: &Path, dist: &Path, spec: &Path, defined: &[(&str, &OsStr)]) -> anyhow::Result<()> {
    let (folder, time) = (dist.join("rpm"), time_unix_s(root)?);
    let mut build = Command::new("rpmbuild");
    build.env("SOURCE_DATE_EPOCH", time).args(["-bb", "--quiet", "--target", &format!("{ARCH}-linux")]);
    let folders = [
        ("_topdir", folder.as_os_str()),
        ("_rpmdir", dist.as_os_str()),
        ("_rpmfilename", "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm".as_ref()),
    ];
    for (name, value) in defined.iter().chain(&folders) {
        let mut define = OsString::from(format!("{name} "));
        define.push(value);
        build.arg("--define").arg(define);
    }
    run(build.arg(spec))
        .context("cannot make the RPM package\nhint: install rpm (Debian, Ubuntu) or rpm-build (Fedora)")?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// The time that packages carry in place of the build's, in seconds since 1970: equal trees give equal packages. It is the
/// commit's, and without git that of the lock file.
pub fn time_unix_s(root: &Path) -> anyhow::Result<String> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let git = Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]).output();
    if let Ok(said) = git
        && said.status.success()
    {
        return Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned());
    }
    let lock = root.join("Cargo.lock");
    let changed = fs::metadata(&lock)
        .and_then(|file| file.modified())
        .with_context(|| format!("cannot read the time of {}", lock.display()))?;
    Ok(changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string())
}

/// The time in date(1)'s format, in English and UTC.
fn date(time_unix_s: &str, format: &str) -> anyhow::Result<String> {
    let mut date = Command::new("date");
    let said = output(date.env("LC_ALL", "C").args([
        "-u",
        "-d",
        &format!("@{time_unix_s}"),
        &format!("+{format}"),
    ]))?;
    Ok(said.trim().to_owned())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes the packages and the list of components of earlier builds from `dist`.
pub fn remove(dist: &Path) -> anyhow::Result<()> {
    for path in made(dist)? {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// The packages and the list of components in `dist`.
fn made(dist: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || fs::read_dir(dist)?.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>();
    let files = read().with_context(|| format!("cannot read {}", dist.display()))?;
    Ok(files.into_iter().filter(|path| is_package_or_list(path)).collect())
}

/// Returns true if the file is a package or the list of components.
fn is_package_or_list(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == LIST
        || name.starts_with("lowlat_") && name.ends_with(".deb")
        || name.starts_with("lowlat-") && !name.starts_with("lowlat-devel-") && name.ends_with(".rpm")
}

/// PATH with the tool, which is installed if this version is missing.
pub fn path_with(root: &Path, (name, version): Tool) -> anyhow::Result<OsString> {
    let folder = root.join("target/tools").join(format!("{name}-{version}"));
    let programs = folder.join("bin");
    if !programs.join(name).exists() {
        let tool = format!("{name}@{version}");
        run(cargo().args(["install", &tool, "--locked", "--debug", "--root"]).arg(&folder))?;
    }
    path_before(programs)
}

/// Man pages, compressed, and completions, as the binary itself prints them.
fn texts(dist: &Path) -> anyhow::Result<()> {
    let binary = dist.join("lowlat");
    let (man, completions) = (dist.join("man"), dist.join("completions"));
    for folder in [&man, &completions] {
        // An earlier version may have had pages that this one lacks.
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    run(Command::new(&binary).args(["man", "--dir"]).arg(&man))?;
    run(Command::new("gzip").args(["-9", "-n", "-r"]).arg(&man))?;
    for (shell, name) in [("bash", "lowlat.bash"), ("zsh", "_lowlat"), ("fish", "lowlat.fish")] {
        let path = completions.join(name);
        let text = output(Command::new(&binary).args(["completions", shell]))?;
        write(&path, &text)?;
    }
    Ok(())
}

/// Writes the list of components that the binary records.
fn components(root: &Path, dist: &Path) -> anyhow::Result<()> {
    let path = dist.join(LIST);
    let mut program = Command::new(COMPONENTS.0);
    let text = output(program.env("PATH", path_with(root, COMPONENTS)?).arg(dist.join("lowlat")))?;
    let list: Value =
        serde_json::from_str(&text).context("cannot read the output of auditable2cdx: not JSON")?;
    let count = list["components"].as_array().map_or(0, Vec::len);
    if count == 0 {
        bail!("cannot write {}: the binary records no component", path.display());
    }
    write(&path, &text)?;
    println!("{}: {count} components", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As from an archive of the sources.
    #[test]
    fn a_tree_without_git_has_the_time_of_its_lock_file() {
        let folder = std::env::temp_dir().join(format!("lowlat-xtask-time-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(time_unix_s(&folder).unwrap_err().to_string().contains("Cargo.lock"));
        let lock = fs::File::create(folder.join("Cargo.lock")).unwrap();
        lock.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(1_795_734_330)).unwrap();
        let time = time_unix_s(&folder).unwrap();
        assert_eq!(time, "1795734330");
        assert_eq!(date(&time, "%a, %d %b %Y %H:%M:%S +0000").unwrap(), "Thu, 26 Nov 2026 23:05:30 +0000");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_packages_and_the_list_are_removed() {
        let folder = std::env::temp_dir().join(format!("lowlat-xtask-{}", std::process::id()));
        fs::create_dir_all(folder.join("man")).unwrap();
        let kept = [
            "lowlat",
            "lowlat-devel-0.1.0-1.x86_64.rpm",
            "lowlat-0.1.0-cp39-abi3-manylinux_2_28_x86_64.whl",
            "lowlat.debug",
        ];
        let removed = ["lowlat-0.1.0-1.x86_64.rpm", "lowlat.cdx.json", "lowlat_0.1.0-1_amd64.deb"];
        for name in kept.iter().chain(&removed) {
            fs::write(folder.join(name), "").unwrap();
        }
        remove(&folder).unwrap();
        assert!(removed.iter().all(|name| !folder.join(name).exists()));
        assert!(kept.iter().chain(&["man"]).all(|name| folder.join(name).exists()));
        fs::remove_dir_all(&folder).unwrap();
    }
}
