//! Boot loaders that lowlat detects but does not configure, and hosts without a known one. The error names
//! the parameters to set manually, and where.

use super::{BootLoader, BootLoaderError, FileChange, error, files};
use lowlat_host::Reading;
use lowlat_host_run::{Root, snapshot::BuiltInLine};
use lowlat_settings::change::BootToken;

/// A host whose command line must be set manually.
#[derive(Debug)]
pub(super) enum ByHand {
    /// Another boot loader, and the file that shows it.
    /// - `reader`: reads the entries that another program writes.
    Other { row: &'static Other, file: String, reader: Option<Box<dyn BootLoader>> },
    /// The kernel has a line of its own and ignores the boot loader's.
    BuiltIn(BuiltInLine),
    /// No boot loader was found.
    Unknown { looked_at: String },
}

/// A boot loader, or a program that writes its configuration.
#[derive(Debug)]
pub(super) struct Other {
    name: &'static str,
    /// Files each of which shows that it is installed.
    files: &'static [&'static str],
    /// The file that sets the command line; empty for the file that was found.
    place: &'static str,
    /// The command to run after a change; empty if there is none.
    then: &'static str,
}

const fn row(name: &'static str, files: &'static [&'static str]) -> Other {
    Other { name, files, place: "", then: "" }
}

impl Other {
    const fn set_in(self, place: &'static str) -> Self {
        Self { place, ..self }
    }

    const fn then(self, then: &'static str) -> Self {
        Self { then, ..self }
    }
}

/// Programs that write a boot loader's entries. They come before the boot loader.
const OWNERS: [Other; 5] = [
    row("NixOS", &["/etc/NIXOS", "/nix/var/nix/profiles/system"])
        .set_in("boot.kernelParams of its configuration (/etc/nixos/configuration.nix)")
        .then("nixos-rebuild boot"),
    row("Guix System", &["/run/current-system/parameters"])
        .set_in("kernel-arguments of its configuration (/etc/config.scm)")
        .then("guix system reconfigure /etc/config.scm"),
    row("proxmox-boot-tool (Proxmox)", &["/etc/kernel/proxmox-boot-uuids", "/etc/kernel/pve-efiboot-uuids"])
        .set_in("/etc/kernel/cmdline, or in /etc/default/grub if GRUB starts the kernel")
        .then("proxmox-boot-tool refresh"),
    row("zipl", &["/etc/zipl.conf"])
        .set_in("the entries of /boot/loader/entries, or in /etc/zipl.conf (parameters=) if there are none")
        .then("zipl"),
    row("GRUB of Flatcar", &["/usr/share/oem/grub.cfg"]).set_in("/oem/grub.cfg (set linux_append=)"),
];

/// Possible paths of Limine's configuration.
const LIMINE: [&str; 8] = [
    "/boot/limine.conf",
    "/boot/limine/limine.conf",
    "/boot/EFI/limine/limine.conf",
    "/boot/efi/limine.conf",
    "/boot/efi/EFI/limine/limine.conf",
    "/efi/limine.conf",
    "/efi/EFI/limine/limine.conf",
    "/boot/limine.cfg",
];
const REFIND: [&str; 3] =
    ["/boot/efi/EFI/refind/refind.conf", "/efi/EFI/refind/refind.conf", "/boot/EFI/refind/refind.conf"];

/// Other boot loaders. The names are those of the firmware's variable `LoaderInfo`.
const OTHERS: [Other; 13] = [
    row("Limine", &["/etc/default/limine"])
        .set_in("/etc/default/limine (KERNEL_CMDLINE)")
        .then("limine-update"),
    row("Limine", &LIMINE),
    row("rEFInd", &["/boot/refind_linux.conf"]),
    row("rEFInd", &REFIND).set_in("/boot/refind_linux.conf, or in the entries of refind.conf"),
    row("extlinux", &["/etc/default/u-boot"])
        .set_in("/etc/default/u-boot (U_BOOT_PARAMETERS)")
        .then("u-boot-update"),
    row("extlinux", &["/boot/extlinux/extlinux.conf", "/extlinux/extlinux.conf"]),
    row("syslinux", &["/boot/syslinux/syslinux.cfg"]),
    row("the firmware of a Raspberry Pi", &["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"]),
    row("U-Boot", &["/boot/armbianEnv.txt", "/boot/uEnv.txt", "/boot/firmware/uEnv.txt"]),
    row("U-Boot", &["/etc/default/flash-kernel"]).set_in("/etc/default/flash-kernel").then("flash-kernel"),
    row("U-Boot", &["/boot/boot.scr"]).set_in("the script that /boot/boot.scr is made from").then("mkimage"),
    row("LILO", &["/etc/lilo.conf"]).then("lilo"),
    row("GRUB legacy (0.97)", &["/boot/grub/menu.lst", "/boot/grub/grub.conf"]),
];

/// The first row with a file that exists, and that file.
fn first(root: &Root, mut rows: impl Iterator<Item = &'static Other>) -> Option<(&'static Other, String)> {
    rows.find_map(|row| Some((row, (*row.files.iter().find(|file| root.exists(file))?).to_owned())))
}

impl ByHand {
    /// The program that writes the boot loader's entries; `reader` reads them.
    pub(super) fn owner(root: &Root, reader: impl FnOnce() -> Option<Box<dyn BootLoader>>) -> Option<Self> {
        let id = files::os_id(root);
        let named = OWNERS.iter().find(|row| !id.is_empty() && row.name.to_lowercase().starts_with(&id));
        let named = named.map(|row| (row, "/etc/os-release".to_owned()));
        let (row, file) = first(root, OWNERS.iter()).or(named)?;
        // Generations are ordinary entries. Entries of other programs cannot be read, or are sorted differently.
        let reader = if row.name == "NixOS" { reader() } else { None };
        Some(Self::Other { row, file, reader })
    }

    pub(super) fn find(root: &Root) -> Option<Self> {
        let (row, file) = first(root, OTHERS.iter())?;
        Some(Self::Other { row, file, reader: None })
    }

    /// The boot loader that the firmware's variable `LoaderInfo` names: "Limine 9.2", "rEFInd 0.14".
    pub(super) fn of_loader_info(root: &Root, info: &str) -> Option<Self> {
        let rows = OTHERS.iter().filter(|row| info.starts_with(row.name));
        let any = rows
            .clone()
            .next_back()
            .map(|row| (row, row.files.first().copied().unwrap_or_default().to_owned()));
        let (row, file) = first(root, rows).or(any)?;
        Some(Self::Other { row, file, reader: None })
    }
}

impl BootLoader for ByHand {
    fn name(&self) -> &'static str {
        match self {
            Self::Other { row, .. } => row.name,
            Self::BuiltIn(_) => "none: the kernel ignores the boot loader's command line",
            Self::Unknown { .. } => "unknown",
        }
    }

    fn sources(&self, _root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        Err(match self {
            Self::Other { row, file, .. } => {
                let place = if row.place.is_empty() { file } else { row.place };
                let then =
                    if row.then.is_empty() { String::new() } else { format!("run `{}`, and ", row.then) };
                BootLoaderError::Refused(format!(
                    "this host boots with {}, which lowlat does not configure; set the kernel parameters manually in \
                     {place}: {}; then {then}reboot",
                    row.name,
                    error::by_hand(tokens)
                ))
            }
            Self::BuiltIn(BuiltInLine { path, line, .. }) => BootLoaderError::Refused(format!(
                "this kernel ignores the boot loader's command line and uses the one it was built with ({path}:{line}); boot a \
                 kernel without CONFIG_CMDLINE_OVERRIDE or CONFIG_CMDLINE_FORCE, or build this one with these \
                 parameters in CONFIG_CMDLINE: {}",
                error::by_hand(tokens)
            )),
            Self::Unknown { looked_at } => BootLoaderError::unknown(looked_at, tokens),
        })
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        match self {
            Self::Other { reader: Some(reader), .. } => reader.next_boot_line(root),
            Self::Other { file, .. } if file.ends_with("/cmdline.txt") => {
                files::as_reading(files::text(root, file)).map(|text| text.trim().to_owned())
            }
            Self::BuiltIn(line) => Reading::Known(line.parameters.clone()),
            _ => Reading::Absent,
        }
    }
}
