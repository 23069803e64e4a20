//! `lowlat onload install`.

use super::{Running, SessionGuard, path, perform, said, surroundings};
use crate::{commands::examples, exit::Exit, output};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use lowlat_host::Reading;
use lowlat_host_run::{Root, programs, snapshot};
use lowlat_net::onload::{KernelFit, Procedure, Release, fit, install, install_packages};
use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

/// Folders of crti.o that compilers of other distributions do not search.
const STARTUP_FOLDERS: [&str; 3] = ["/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib"];

/// Check, build, install and load a release of Onload
#[derive(Debug, Args)]
#[command(after_help = examples(&[
    ("lowlat onload install openonload-201811-u1.tgz --dry-run", "Show the steps, and whether it fits the kernel."),
    ("sudo lowlat onload install onload-9.2.1.tgz", "Build and install it, after a question."),
]))]
pub struct OnloadInstallArgs {
    /// Archive of a release, such as openonload-201811-u1.tgz or onload-9.2.1.tgz, the vendor's bundle of it, or its
    /// packages (.deb, .rpm)
    #[arg(value_name = "ARCHIVE", required = true)]
    archives: Vec<PathBuf>,
    /// Unpack it in this folder
    #[arg(long, value_name = "DIR", default_value = "/usr/local/src")]
    into: PathBuf,
    #[command(flatten)]
    guard: SessionGuard,
    #[command(flatten)]
    running: Running,
}

pub fn run(arguments: &OnloadInstallArgs) -> anyhow::Result<Exit> {
    let files = arguments.archives.iter().map(std::path::absolute).collect::<Result<Vec<PathBuf>, _>>()?;
    let root = Root::live();
    let host = snapshot::read_without_knobs(&root);
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let into = std::path::absolute(&arguments.into)?;
    let start = |procedure: &Procedure| {
        if arguments.running.dry_run {
            return perform(procedure, &arguments.running);
        }
        arguments.guard.check("load the driver", &host)?;
        let before = surroundings();
        let done = perform(procedure, &arguments.running);
        let made = before.log_lines(&surroundings(), &into.display().to_string());
        // An installation that failed has made folders too.
        if let (false, Ok(mut log)) = (made.is_empty(), programs::open_log(&arguments.running.log)) {
            writeln!(log, "{}", made.join("\n"))?;
        }
        done
    };
    if let Some(procedure) = install_packages(&names) {
        return start(&procedure);
    }
    let [archive] = files.as_slice() else {
        bail!(
            "cannot install {}: expected one archive, or packages of Onload of one format\nhint: name one .tgz or .zip \
             file, or only .deb or only .rpm files",
            names.join(", ")
        );
    };
    let name = archive.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let found = Release::parse(name).map(|release| (release, None)).or_else(|| bundled(archive));
    let (release, inside) = found.with_context(|| {
        format!(
            "cannot install {}: its name is not that of a release\nhint: expected a name such as \
             openonload-201811-u1.tgz or onload-9.2.1.tgz, or a bundle with such a file in it",
            archive.display()
        )
    })?;
    check_sum(archive, name)?;
    let [kernel, distribution] = [&host.kernel.release, &host.kernel.distribution].map(Reading::text);
    let notes = release_notes(archive, &release, inside.as_deref()).unwrap_or_default();
    let fit = fit(&notes, kernel, distribution);
    let level = if matches!(fit, KernelFit::Supported(_)) { "note" } else { "warning" };
    output::talk(&format!("{level}: {distribution}, kernel {kernel}: {fit}"));
    ensure!(
        into.is_dir(),
        "cannot unpack in {}: no such folder\nhint: create it, or name another with --into",
        into.display()
    );
    let lacking: Vec<&str> =
        ["gcc", "make"].into_iter().filter(|name| programs::find(&root, name, &path()).is_none()).collect();
    // The vendor's program would install scripts without libraries, and end with success.
    ensure!(
        lacking.is_empty() || arguments.running.dry_run,
        "cannot build Onload: {} is not installed\nhint: install gcc, make and the headers of the running kernel",
        lacking.join(" and ")
    );
    let [archive, into] = [archive, &into].map(|path| path.display().to_string());
    start(&install(&release, &archive, inside.as_deref(), &into, startup_folder(&root)))
}

/// Returns the release in a bundle as the vendor publishes it, a zip file whose own name is a document's number, with the
/// archive's path in it.
fn bundled(bundle: &Path) -> Option<(Release, Option<String>)> {
    bundle.extension().filter(|extension| extension.eq_ignore_ascii_case("zip"))?;
    let files = said(&["unzip", "-Z1", &bundle.display().to_string()])?;
    let release = |file: &str| {
        let release = Release::parse(Path::new(file).file_name()?.to_str()?)?;
        Some((release, Some(file.to_owned())))
    };
    files.lines().find_map(release)
}

/// Returns the ReleaseNotes in an archive, or in the archive of a bundle.
fn release_notes(archive: &Path, release: &Release, inside: Option<&str>) -> Option<String> {
    const OF_BUNDLE: &str = "unzip -p \"$0\" \"$1\" | tar -xzO \"$2\"";
    let (archive, notes) = (archive.display().to_string(), format!("{}/ReleaseNotes", release.name));
    match inside {
        Some(inside) => said(&["sh", "-c", OF_BUNDLE, &archive, inside, &notes]),
        None if release.ending == ".zip" => said(&["unzip", "-p", &archive, &notes]),
        None => said(&["tar", "-xzOf", &archive, &notes]),
    }
}

/// Compares the archive with the sum in ARCHIVE.md5 beside it.
fn check_sum(archive: &Path, name: &str) -> anyhow::Result<()> {
    let found = programs::md5(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let file = archive.with_file_name(format!("{name}.md5"));
    let Ok(text) = std::fs::read_to_string(&file) else {
        output::talk(&format!(
            "warning: not checked: {} is missing; the archive's MD5 sum is {found}",
            file.display()
        ));
        return Ok(());
    };
    let expected = text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    if expected != found {
        bail!(
            "cannot install {}: its MD5 sum is {found}, and {} has {expected}\nhint: copy the archive again",
            archive.display(),
            file.display()
        );
    }
    Ok(())
}

/// Returns the folder of crti.o, if the compiler does not find it there by itself.
fn startup_folder(root: &Root) -> Option<&'static str> {
    let answer = said(&["gcc", "-print-file-name=crti.o"])?;
    // The compiler repeats the bare name if it finds no such file.
    if answer.trim().contains('/') {
        return None;
    }
    STARTUP_FOLDERS.into_iter().find(|folder| root.exists(&format!("{folder}/crti.o")))
}
