//! The files that boot entries are generated from. Those that name a parameter's origin come last, because
//! generated entries contain every parameter, whatever its origin.

use lowlat_host::Reading;
use lowlat_host_run::environment::{lines, text};
use lowlat_host_run::{Root, snapshot::built_in_line};
use lowlat_plan::verify::BootSource;

/// Entries of the Boot Loader Specification.
const ENTRIES: [&str; 4] = [
    "/boot/loader/entries/*.conf",
    "/boot/efi/loader/entries/*.conf",
    "/efi/loader/entries/*.conf",
    "/boot/boot/loader/entries/*.conf",
];
/// Paths of GRUB's environment blocks.
const GRUBENVS: [&str; 2] = ["/boot/grub2/grubenv", "/boot/grub/grubenv"];
/// The host's command line as a whole file (kernel-install(8)).
const WHOLE: [&str; 2] = ["/usr/lib/kernel/cmdline", "/etc/kernel/cmdline"];
/// File with the parameters that TuneD requests.
const TUNED: &str = "/etc/tuned/bootcmdline";
/// Maximum number of files, and of bytes in a line.
const FILES_MAX: usize = 256;
const LINE_BYTES_MAX: usize = 16 << 10;

pub(super) fn read(root: &Root) -> Vec<BootSource> {
    let mut sources = Vec::new();
    for path in ENTRIES.iter().flat_map(|glob| root.glob(glob)).take(FILES_MAX) {
        assignments(root, &path, ' ', |name| name == "options", &mut sources);
    }
    for path in GRUBENVS {
        let is_meant = |name: &str| matches!(name, "kernelopts" | "tuned_params" | "cmdline");
        assignments(root, path, '=', is_meant, &mut sources);
    }
    for path in WHOLE {
        for (line, parameters) in text(root, path).iter().flat_map(|text| lines(text)) {
            push(&mut sources, path, line, "", parameters);
        }
    }
    let is_grub = |name: &str| name.starts_with("GRUB_CMDLINE_LINUX");
    for path in std::iter::once("/etc/default/grub".to_owned())
        .chain(root.glob("/etc/default/grub.d/*.cfg"))
        .take(FILES_MAX)
    {
        assignments(root, &path, '=', is_grub, &mut sources);
    }
    assignments(root, TUNED, '=', |name| name == "TUNED_BOOT_CMDLINE", &mut sources);
    if let Reading::Known(built_in) = built_in_line(root) {
        push(
            &mut sources,
            &built_in.path,
            built_in.line,
            "CONFIG_CMDLINE, which the kernel was built with",
            &built_in.parameters,
        );
    }
    sources
}

/// Lines `NAME=value` or `name value` of a file.
fn assignments(
    root: &Root,
    path: &str,
    parted_by: char,
    is_meant: impl Fn(&str) -> bool,
    sources: &mut Vec<BootSource>,
) {
    let Some(text) = text(root, path) else { return };
    for (line, text) in lines(&text) {
        let Some((name, value)) = text.split_once(parted_by) else { continue };
        let name = name.trim().trim_end_matches('+').trim_start_matches("export ");
        if is_meant(name) {
            push(sources, path, line, name, unquoted(value.trim()));
        }
    }
}

/// Removes the quotes around the whole value; those inside it belong to parameters.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

fn push(sources: &mut Vec<BootSource>, path: &str, line: u32, variable: &str, parameters: &str) {
    if parameters.len() <= LINE_BYTES_MAX {
        sources.push(BootSource {
            path: path.to_owned(),
            line,
            variable: variable.to_owned(),
            parameters: parameters.to_owned(),
        });
    }
}
