//! Finds the boot loader of a host.

use super::{
    BootLoader, BootLoaderError, bls::GrubBls, by_hand::ByHand, efi_variable, files,
    grub_generated::GeneratedGrub, grub_menu_file::MenuFile, ostree::Ostree, systemd_boot::SystemdBoot,
    unified_image::UnifiedImage,
};
use lowlat_host::Reading;
use lowlat_host_run::{Root, snapshot::built_in_line};

/// Files that only containers have.
const CONTAINER_FILES: [&str; 4] =
    ["/run/systemd/container", "/run/.containerenv", "/.dockerenv", "/run/secrets/kubernetes.io"];

/// Directories of boot loader configurations. If one cannot be read, the boot loader is unknown.
const LOOKED_AT: [&str; 8] = [
    "/boot",
    "/boot/grub",
    "/boot/grub2",
    "/boot/loader/entries",
    "/boot/efi",
    "/efi",
    "/boot/extlinux",
    "/boot/firmware",
];

/// Finds the host's boot loader from the firmware's variables, or from its files.
///
/// # Errors
/// In a container, and if a directory that decides cannot be read. A boot loader that lowlat cannot
/// configure is found; setting the command line with it fails, with the parameters to set.
pub fn detect(root: &Root) -> Result<Box<dyn BootLoader>, BootLoaderError> {
    if let Some(found) = container(root) {
        return Err(BootLoaderError::Container { found });
    }
    if let Reading::Known(built_in) = built_in_line(root)
        && built_in.is_only_line
    {
        return Ok(Box::new(ByHand::BuiltIn(built_in)));
    }
    if root.exists("/run/ostree-booted") || root.exists("/ostree/deploy") {
        return Ok(Box::new(Ostree));
    }
    if let Some(owner) = ByHand::owner(root, || configured(root).ok()) {
        return Ok(Box::new(owner));
    }
    configured(root)
}

/// The boot loader itself, whichever program owns its entries.
fn configured(root: &Root) -> Result<Box<dyn BootLoader>, BootLoaderError> {
    let loader = efi_variable(root, "LoaderInfo").unwrap_or_default();
    if loader.starts_with("systemd-boot") {
        return SystemdBoot { name: "systemd-boot" }.or_image(root);
    }
    if efi_variable(root, "StubInfo").is_some() {
        return Ok(Box::new(UnifiedImage::of_firmware(root)));
    }
    if let Some(other) = ByHand::of_loader_info(root, &loader) {
        return Ok(Box::new(other));
    }
    if let Some(menu) = MenuFile::find(root)? {
        return grub(root, menu);
    }
    let (entries, other) = (SystemdBoot::find(root)?, ByHand::find(root));
    // Limine and rEFInd read no such entries, so another boot loader left them.
    let is_left = |entries: &SystemdBoot| {
        entries.name != "systemd-boot"
            && other.as_ref().is_some_and(|other| ["Limine", "rEFInd"].contains(&other.name()))
    };
    if let Some(entries) = entries.filter(|entries| !is_left(entries)) {
        return entries.or_image(root);
    }
    if let Some(other) = other {
        return Ok(Box::new(other));
    }
    if let Some(path) = LOOKED_AT.into_iter().find(|path| root.list(path) == Reading::Denied) {
        return Err(BootLoaderError::Denied { path: path.to_owned() });
    }
    Ok(Box::new(ByHand::Unknown { looked_at: looked_at(root) }))
}

/// The way in which this host configures GRUB's command line.
fn grub(root: &Root, menu: MenuFile) -> Result<Box<dyn BootLoader>, BootLoaderError> {
    if menu.has_blscfg && !files::entries(root, super::bls::ENTRIES)?.is_empty() {
        return Ok(Box::new(GrubBls { menu }));
    }
    Ok(Box::new(GeneratedGrub::new(root, menu)))
}

/// The evidence that this is a container, if it is one.
pub(crate) fn container(root: &Root) -> Option<String> {
    let file = CONTAINER_FILES.into_iter().find(|path| root.exists(path)).map(str::to_owned);
    file.or_else(|| {
        let environment = root.read_bytes("/proc/1/environ").into_known()?;
        let is_word = |word: &&[u8]| word.starts_with(b"container=");
        let word = environment.split(|byte| *byte == 0).find(is_word)?;
        Some(format!("/proc/1/environ contains {}", String::from_utf8_lossy(word)))
    })
}

/// The paths that were checked, and a possible reason why none was found.
fn looked_at(root: &Root) -> String {
    let there: Vec<&str> = LOOKED_AT.into_iter().filter(|path| root.exists(path)).collect();
    let mut text = if there.is_empty() { "no /boot and no /efi".to_owned() } else { there.join(", ") };
    let fstab = root.read("/etc/fstab");
    let is_mount = |line: &&str| {
        let place = line.split_whitespace().nth(1).unwrap_or_default();
        !line.trim_start().starts_with('#') && ["/boot", "/boot/efi", "/efi"].contains(&place)
    };
    if let Some(line) = fstab.text().lines().find(is_mount) {
        let place = line.split_whitespace().nth(1).unwrap_or_default();
        text += &["; /etc/fstab has ", place, ", check that it is mounted"].concat();
    }
    text
}
