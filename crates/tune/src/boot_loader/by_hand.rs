//! Boot loaders that lowlat detects but does not configure, and hosts without a known one. The error names
//! the parameters to set manually.

use super::{BootLoader, BootLoaderError, FileChange, error, files};
use crate::Programs;
use lowlat_host::Reading;
use lowlat_settings::change::BootToken;
use lowlat_sys::Root;

/// A host whose command line must be set manually.
#[derive(Debug)]
pub(super) enum ByHand {
    /// Another boot loader, configured by a file.
    Other { name: &'static str, file: String },
    /// The firmware boots an image that contains the command line.
    Image { image: String },
    /// No boot loader was found.
    Unknown { looked_at: String },
}

/// Other boot loaders with the files that contain the command line.
const OTHERS: [(&str, &str); 8] = [
    ("extlinux", "/boot/extlinux/extlinux.conf"),
    ("extlinux", "/extlinux/extlinux.conf"),
    ("syslinux", "/boot/syslinux/syslinux.cfg"),
    ("the firmware of a Raspberry Pi", "/boot/firmware/cmdline.txt"),
    ("the firmware of a Raspberry Pi", "/boot/cmdline.txt"),
    ("zipl", "/etc/zipl.conf"),
    ("LILO", "/etc/lilo.conf"),
    ("GRUB 0.97", "/boot/grub/menu.lst"),
];

impl ByHand {
    pub(super) fn find(root: &Root) -> Option<Self> {
        let (name, file) = OTHERS.into_iter().find(|(_, file)| root.exists(file))?;
        Some(Self::Other { name, file: file.to_owned() })
    }

    pub(super) fn image(root: &Root) -> Self {
        let image = super::efi::variable(root, "StubImageIdentifier");
        Self::Image {
            image: image.map_or_else(|| "on the EFI partition".to_owned(), |i| i.replace('\\', "/")),
        }
    }

    pub(super) fn unknown(looked_at: String) -> Self {
        Self::Unknown { looked_at }
    }
}

impl BootLoader for ByHand {
    fn name(&self) -> &'static str {
        match self {
            Self::Other { name, .. } => name,
            Self::Image { .. } => "unified kernel image",
            Self::Unknown { .. } => "unknown",
        }
    }

    fn sources(&self, _root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        let line = error::by_hand(tokens);
        Err(match self {
            Self::Other { name, file } => BootLoaderError::NotWritten { name, file: file.clone(), line },
            Self::Image { image } => BootLoaderError::Image { image: image.clone(), line },
            Self::Unknown { looked_at } => BootLoaderError::Unknown { looked_at: looked_at.clone(), line },
        })
    }

    fn generated(&self, _root: &Root, _programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError> {
        Ok(Vec::new())
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        match self {
            Self::Other { file, .. } if file.ends_with("/cmdline.txt") => {
                files::as_reading(files::text(root, file)).map(|text| text.trim().to_owned())
            }
            _ => Reading::Absent,
        }
    }
}
