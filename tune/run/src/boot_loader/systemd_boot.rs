//! systemd-boot, and others that read the same entries: the files of loader/entries, and /etc/kernel/cmdline for
//! kernels that are installed later. Images that contain their command line (type 2) are another boot loader
//! ([`super::unified_image`]).

use super::{
    BootLoader, BootLoaderError, EntryLine, FileChange, efi_variable,
    files::{self, KERNEL_COMMAND_LINE, VENDOR_COMMAND_LINE},
    unified_image::UnifiedImage,
};
use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_plan::boot_files::{
    self, entry,
    entry_order::{EntryFile, of_systemd_boot},
};
use lowlat_settings::change::BootToken;

/// Mount points of the EFI partition and of the partition for kernels.
pub(super) const PARTITIONS: [&str; 3] = ["/efi", "/boot", "/boot/efi"];

#[derive(Debug)]
pub(super) struct SystemdBoot {
    pub(super) name: &'static str,
}

/// An entry and the path of its file.
#[derive(Debug)]
struct Placed {
    path: String,
    file: EntryFile,
}

impl SystemdBoot {
    /// Finds entries or images. Without systemd-boot's configuration, another boot loader may read them.
    pub(super) fn find(root: &Root) -> Result<Option<Self>, BootLoaderError> {
        if entries(root)?.is_empty() && images(root).is_empty() {
            return Ok(None);
        }
        let is_configured =
            PARTITIONS.iter().any(|partition| root.exists(&format!("{partition}/loader/loader.conf")));
        let name = if is_configured { "systemd-boot" } else { "boot entries (Boot Loader Specification)" };
        Ok(Some(Self { name }))
    }

    /// The image that boots next, if it is one.
    pub(super) fn or_image(self, root: &Root) -> Result<Box<dyn BootLoader>, BootLoaderError> {
        let image = next_image(root)?;
        Ok(image
            .map_or_else(|| Box::new(self) as Box<dyn BootLoader>, |path| Box::new(UnifiedImage { path })))
    }
}

/// The text entries of all partitions. One partition may be mounted in two places.
fn entries(root: &Root) -> Result<Vec<Placed>, BootLoaderError> {
    let mut placed: Vec<Placed> = Vec::new();
    for partition in PARTITIONS {
        let directory = format!("{partition}/loader/entries");
        for file in files::entries(root, &directory)? {
            let path = format!("{directory}/{}.conf", file.id);
            let path = root.real_path(&path).into_known().unwrap_or(path);
            if !placed.iter().any(|other| other.path == path) {
                placed.push(Placed { path, file });
            }
        }
    }
    Ok(placed)
}

/// True if an entry of that name is an image. The specification requires lowercase.
fn is_image(id: &str) -> bool {
    id.rsplit_once('.').is_some_and(|(_, end)| end == "efi")
}

/// The images that contain their command line.
pub(super) fn images(root: &Root) -> Vec<String> {
    PARTITIONS.iter().flat_map(|partition| root.glob(&format!("{partition}/EFI/Linux/*.efi"))).collect()
}

/// The entry that boots next; an image has no text.
fn next(root: &Root) -> Result<Option<Placed>, BootLoaderError> {
    let mut all = entries(root)?;
    let id = files::os_id(root);
    for path in images(root) {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        // An image sorts by the name of its distribution, which is inside it, and its version.
        let text = format!("sort-key {id}\nversion {}\n", name.trim_end_matches(".efi"));
        all.push(Placed { path, file: EntryFile { id: name, text } });
    }
    let files: Vec<EntryFile> = all.iter().map(|placed| placed.file.clone()).collect();
    let chosen = of_systemd_boot(&files, &wanted(root)).map(|file| file.id.clone());
    Ok(all.into_iter().find(|placed| Some(&placed.file.id) == chosen.as_ref()))
}

fn next_image(root: &Root) -> Result<Option<String>, BootLoaderError> {
    Ok(next(root)?.filter(|placed| is_image(&placed.file.id)).map(|placed| placed.path))
}

/// Names of the entry to boot; the first that exists counts.
fn wanted(root: &Root) -> Vec<String> {
    let set = ["LoaderEntryOneShot", "LoaderEntryDefault"].map(|name| efi_variable(root, name));
    let configured = PARTITIONS.iter().find_map(|partition| {
        let text = root.read(&format!("{partition}/loader/loader.conf")).into_known()?;
        entry::values(&text, "default").last().map(|name| name.trim().to_owned())
    });
    let last = |name: String| {
        if name == "@saved" { efi_variable(root, "LoaderEntryLastBooted") } else { Some(name) }
    };
    set.into_iter().flatten().chain(configured).filter_map(last).collect()
}

/// The image, if an image boots.
fn image_that_boots(root: &Root, usual: usize) -> Result<Option<String>, BootLoaderError> {
    let selected = efi_variable(root, "LoaderEntrySelected").filter(|id| is_image(id));
    let images = images(root);
    let of_name =
        |id: String| images.iter().find(|path| path.ends_with(&format!("/{id}"))).cloned().unwrap_or(id);
    if let Some(id) = selected {
        return Ok(Some(of_name(id)));
    }
    if usual == 0 {
        return Ok(images.first().cloned());
    }
    next_image(root)
}

impl BootLoader for SystemdBoot {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        boot_files::check(tokens)?;
        let entries = entries(root)?;
        let usual: Vec<&Placed> =
            entries.iter().filter(|placed| entry::is_usual(&placed.file.id, &placed.file.text)).collect();
        if let Some(image) = image_that_boots(root, usual.len())? {
            return Err(BootLoaderError::image(&image, "the next boot is another entry's", tokens));
        }
        if usual.is_empty() {
            let looked_at = PARTITIONS.map(|partition| format!("{partition}/loader/entries")).join(", ");
            return Err(BootLoaderError::unknown(&looked_at, tokens));
        }
        let mut changes = Vec::new();
        for placed in usual {
            let new = entry::edit(&placed.file.text, tokens);
            files::check_length(&placed.path, &entry::options(&new))?;
            changes.push(files::change(root, &placed.path, new));
        }
        changes.extend(files::later_kernels(root, tokens)?);
        Ok(changes)
    }

    fn entry_lines(&self, root: &Root) -> Vec<EntryLine> {
        let line =
            |placed: Placed| EntryLine { options: entry::options(&placed.file.text), path: placed.path };
        entries(root).unwrap_or_default().into_iter().map(line).collect()
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        match next(root) {
            Ok(Some(placed)) if is_image(&placed.file.id) => {
                Reading::unparsable(placed.path, "an image", "an entry whose command line is text")
            }
            other => {
                files::as_reading(other.map(|placed| placed.map(|placed| entry::options(&placed.file.text))))
            }
        }
    }

    fn notes(&self, root: &Root, _tokens: &[BootToken]) -> Vec<String> {
        let entries = entries(root).unwrap_or_default();
        let left = entries.iter().filter(|placed| !entry::is_usual(&placed.file.id, &placed.file.text));
        let mut notes: Vec<String> =
            left.map(|placed| format!("{} is unchanged, so it boots as before.", placed.path)).collect();
        notes.extend(
            images(root)
                .iter()
                .map(|image| format!("{image} contains its command line, which lowlat does not change.")),
        );
        if !root.exists(KERNEL_COMMAND_LINE) && !root.exists(VENDOR_COMMAND_LINE) {
            notes.push(format!(
                "{KERNEL_COMMAND_LINE} is missing: a kernel installed before the reboot gets the command line of \
                 the running one."
            ));
        }
        notes
    }
}
