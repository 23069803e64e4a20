//! Unified kernel images that `kernel-install` builds from /etc/kernel/cmdline (layout=uki, with ukify, dracut or
//! mkinitcpio). The source is changed, and the image that boots next is built again, into a separate directory; the undo
//! log writes it in place of the old one. Images of any other source are reported, not changed.

use super::{
    BootLoader, BootLoaderError, FileChange, efi_variable, error,
    files::{self, KERNEL_COMMAND_LINE},
    pe,
    systemd_boot::{self, PARTITIONS},
};
use crate::Programs;
use lowlat_host::{
    Reading,
    cmdline::{LINE_BYTES_MAX, split},
};
use lowlat_host_run::{Root, snapshot::secure_boot};
use lowlat_plan::boot_files;
use lowlat_settings::change::BootToken;
use lowlat_undo::FILE_BYTES_MAX;
use std::{
    collections::BTreeSet,
    fmt,
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
};

const TOOL: &str = "/usr/bin/kernel-install";
/// Its call, in errors.
const PROGRAM: &str = "kernel-install add";
/// Directories of kernel-install's configuration, the first that has a file counts.
const CONFIGURATION: [&str; 4] = ["/etc/kernel", "/run/kernel", "/usr/local/lib/kernel", "/usr/lib/kernel"];
/// Keys with which sbctl signs images.
const SBCTL_KEYS: [&str; 2] = ["/var/lib/sbctl/keys/db/db.key", "/usr/share/secureboot/keys/db/db.key"];
/// Builds the image of a release in a separate directory and prints it. The arguments are the release and the kernel.
const BUILD: &str = r#"set -e
directory=$(mktemp -d /var/tmp/lowlat-image.XXXXXX)
trap 'rm -rf "$directory"' EXIT
BOOT_ROOT=$directory kernel-install add "$@" >&2
set -- "$directory"/EFI/Linux/*.efi
[ $# = 1 ] && [ -f "$1" ] || { echo "expected one image, found $*" >&2; exit 1; }
cat "$1""#;

#[derive(Debug)]
pub(super) struct UnifiedImage {
    pub(super) path: String,
}

/// The parts of an image that lowlat reads.
#[derive(Debug, Default)]
struct Contents {
    line: String,
    /// The kernel's release; empty if the image does not contain it.
    release: String,
    /// The size of the whole image.
    bytes: u64,
}

/// The contents as text, a line each, which captures keep in place of the image.
fn parts(mut file: &File) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.by_ref().take(pe::HEAD_BYTES).read_to_end(&mut head)?;
    let text = |name| {
        let Some(place) = pe::section(&head, name) else { return Ok(String::new()) };
        let length = usize::try_from(place.end - place.start).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(2 * LINE_BYTES_MAX)];
        file.read_exact_at(&mut bytes, place.start)?;
        let text = String::from_utf8_lossy(&bytes).replace(|c: char| c.is_control(), " ");
        io::Result::Ok(text.trim().to_owned())
    };
    let (line, release) = (text(".cmdline")?, text(".uname")?);
    Ok(format!("{line}\n{release}\n{}\n", file.metadata()?.len()).into_bytes())
}

impl UnifiedImage {
    /// The image that the firmware, or another boot loader, started.
    pub(super) fn of_firmware(root: &Root) -> Self {
        let named = efi_variable(root, "StubImageIdentifier").map(|name| name.replace('\\', "/"));
        let path = named.unwrap_or_else(|| "on the EFI partition".to_owned());
        let places = PARTITIONS.iter().map(|partition| format!("{partition}{path}"));
        Self { path: places.into_iter().find(|place| root.exists(place)).unwrap_or(path) }
    }

    fn contents(&self, root: &Root) -> Reading<Contents> {
        root.read_part(&self.path, parts).and_then(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            let mut lines = text.lines().map(str::to_owned);
            let [line, release, bytes] =
                [lines.next(), lines.next(), lines.next()].map(Option::unwrap_or_default);
            if line.is_empty() {
                return Reading::unparsable(
                    &self.path,
                    "an image without one",
                    "a unified kernel image with a command line",
                );
            }
            Reading::Known(Contents { line, release, bytes: bytes.parse().unwrap_or_default() })
        })
    }

    /// The release and the kernel that the image is built from.
    fn kernel(&self, root: &Root) -> Option<(String, String)> {
        let release = self.contents(root).into_known()?.release;
        let places = [format!("/boot/vmlinuz-{release}"), format!("/usr/lib/modules/{release}/vmlinuz")];
        let kernel = places.into_iter().find(|path| root.exists(path))?;
        (!release.is_empty()).then_some((release, kernel))
    }

    /// Builds the image from the present source.
    fn build(&self, root: &Root, programs: &dyn Programs) -> Result<Vec<u8>, BootLoaderError> {
        let failed = |said: &dyn fmt::Display| BootLoaderError::generator(PROGRAM, said);
        let (release, kernel) =
            self.kernel(root).ok_or_else(|| failed(&"the kernel of the image is not installed"))?;
        let outcome = programs
            .run("sh", &["-c", BUILD, "kernel-install", &release, &kernel])
            .map_err(|error| failed(&error))?;
        if outcome.is_success { Ok(outcome.stdout) } else { Err(failed(&error::end_of(&outcome.stderr))) }
    }

    /// The reason why lowlat does not build the image again, if there is one.
    fn obstacle(&self, root: &Root, source: Option<&str>, tokens: &[BootToken]) -> Option<String> {
        let contents = match self.contents(root) {
            Reading::Known(contents) => contents,
            Reading::Denied => return Some("it cannot be read".to_owned()),
            _ => return Some("no line was found in it".to_owned()),
        };
        let Some(source) = source else { return Some(format!("{KERNEL_COMMAND_LINE} is missing")) };
        if !root.exists(TOOL) || layout(root).as_deref() != Some("uki") {
            return Some(
                "no tool builds it again: kernel-install is not set up for it (layout=uki)".to_owned(),
            );
        }
        let (present, wanted) =
            (boot_files::edited(&contents.line, tokens), boot_files::edited_file(source, tokens));
        if !is_from(&present, &wanted) {
            return Some(format!("its command line differs from {KERNEL_COMMAND_LINE}"));
        }
        if self.kernel(root).is_none() {
            return Some(format!("the kernel in it, {:?}, is not installed", contents.release));
        }
        if contents.bytes > FILE_BYTES_MAX {
            let bytes = contents.bytes;
            return Some(format!(
                "it has {bytes} bytes, and lowlat can restore files of up to {FILE_BYTES_MAX}"
            ));
        }
        let is_locked = is_secure_boot(root) && !has_key(root);
        is_locked.then(|| {
            "Secure Boot is on, and no key is set up with which kernel-install could sign it (SecureBootPrivateKey= in \
             uki.conf)"
                .to_owned()
        })
    }
}

/// The reason why a new image must not take the place of the old one, if there is one.
fn fault(root: &Root, image: &[u8], source: &str) -> Option<String> {
    let place = pe::section(image, ".cmdline").unwrap_or_default();
    let [start, end] = [place.start, place.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let line = String::from_utf8_lossy(image.get(start..end).unwrap_or_default());
    if !is_from(line.trim_matches(['\0', '\n', ' ']), source) {
        return Some(format!("does not contain the command line of {KERNEL_COMMAND_LINE}"));
    }
    (is_secure_boot(root) && !pe::is_signed(image)).then(|| "is not signed, and Secure Boot is on".to_owned())
}

/// The whole file.
fn whole(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The words of the file that are not in comments.
fn words(source: &str) -> BTreeSet<&str> {
    let lines = source.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(split).collect()
}

/// True if a line was built from the source. ukify also copies comments, and adds the machine's ID.
fn is_from(line: &str, source: &str) -> bool {
    let line: BTreeSet<&str> = split(line).into_iter().collect();
    let all: BTreeSet<&str> = split(source).into_iter().collect();
    let is_added = |word: &&str| word.starts_with("systemd.machine_id=") || all.contains(word);
    words(source).is_subset(&line) && line.iter().all(is_added)
}

/// The text of the first file of that name in kernel-install's configuration.
fn configuration(root: &Root, name: &str) -> Option<String> {
    CONFIGURATION.iter().find_map(|directory| root.read(&format!("{directory}/{name}")).into_known())
}

/// The value of a key; the last counts.
fn value(text: &str, key: &str) -> Option<String> {
    let mut values =
        text.lines().filter_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='));
    values.next_back().map(|value| value.trim().to_owned())
}

/// The layout that kernel-install is set to; drop-ins count more than the file.
fn layout(root: &Root) -> Option<String> {
    let of_directory = |directory: &&str| root.glob(&format!("{directory}/install.conf.d/*.conf"));
    let mut drop_ins: Vec<String> = CONFIGURATION.iter().flat_map(of_directory).collect();
    drop_ins.sort_by_key(|path| path.rsplit('/').next().map(str::to_owned));
    let texts = configuration(root, "install.conf")
        .into_iter()
        .chain(drop_ins.iter().map(|path| root.read(path).text().to_owned()));
    texts.filter_map(|text| value(&text, "layout")).last()
}

fn is_secure_boot(root: &Root) -> bool {
    secure_boot(root) == Reading::Known(true)
}

fn has_key(root: &Root) -> bool {
    let names_key = |text: &String| value(text, "SecureBootPrivateKey").is_some_and(|key| !key.is_empty());
    configuration(root, "uki.conf").is_some_and(|text| names_key(&text))
        || SBCTL_KEYS.iter().any(|key| root.exists(key))
}

impl BootLoader for UnifiedImage {
    fn name(&self) -> &'static str {
        "unified kernel image"
    }

    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        boot_files::check(tokens)?;
        let source = files::text(root, KERNEL_COMMAND_LINE)?;
        if let Some(why) = self.obstacle(root, source.as_deref(), tokens) {
            return Err(BootLoaderError::image(&self.path, &why, tokens));
        }
        let new = boot_files::edited_file(&source.unwrap_or_default(), tokens);
        files::check_length(KERNEL_COMMAND_LINE, new.trim_end())?;
        Ok(vec![files::change(root, KERNEL_COMMAND_LINE, new)])
    }

    /// The image with the line of the present source; the present image if that has it.
    fn generated(&self, root: &Root, programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError> {
        let source = files::text(root, KERNEL_COMMAND_LINE)?.unwrap_or_default();
        let present = self.contents(root).into_known().unwrap_or_default();
        let image = if is_from(&present.line, &source) {
            let whole = root.read_part(&self.path, whole).into_known();
            whole.ok_or_else(|| BootLoaderError::Denied { path: self.path.clone() })?
        } else {
            let image = self.build(root, programs)?;
            match fault(root, &image, &source) {
                Some(fault) => return Err(BootLoaderError::generator(PROGRAM, format!("its image {fault}"))),
                None => image,
            }
        };
        Ok(vec![files::change(root, &self.path, image)])
    }

    fn generator(&self, root: &Root) -> Option<String> {
        self.kernel(root).map(|(release, kernel)| format!("kernel-install add {release} {kernel}"))
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        self.contents(root).map(|contents| contents.line)
    }

    fn notes(&self, root: &Root, _tokens: &[BootToken]) -> Vec<String> {
        let others = systemd_boot::images(root).into_iter().filter(|path| *path != self.path);
        others.map(|path| format!("{path} is unchanged, so it boots as before.")).collect()
    }
}
