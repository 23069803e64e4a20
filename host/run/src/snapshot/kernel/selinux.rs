//! Reads SELinux: the mode of the running kernel, and that of later boots.

use crate::Root;
use lowlat_host::Reading;

/// File that exists while SELinux runs.
const ENFORCE: &str = "/sys/fs/selinux/enforce";
/// Names of the security modules in use, with commas between them.
const LSM: &str = "/sys/kernel/security/lsm";
const CONFIG: &str = "/etc/selinux/config";

/// "enforcing", "permissive", or "disabled" if the kernel does not run SELinux; absent if neither file shows it.
pub(super) fn mode(root: &Root) -> Reading<String> {
    let running = root.read(ENFORCE).parse(ENFORCE, "0 or 1", |text| match text {
        "1" => Some("enforcing".to_owned()),
        "0" => Some("permissive".to_owned()),
        _ => None,
    });
    running.or(|| {
        root.read(LSM).and_then(|modules| {
            let is_in_use = modules.split(',').any(|module| module == "selinux");
            Reading::from_option((!is_in_use).then(|| "disabled".to_owned()))
        })
    })
}

/// SELINUX= of the configuration: "enforcing", "permissive", "disabled".
pub(super) fn configured(root: &Root) -> Reading<String> {
    root.read(CONFIG).and_then(|text| {
        let value = |line: &str| line.trim().strip_prefix("SELINUX=").map(|value| value.trim().to_owned());
        Reading::from_option(text.lines().filter_map(value).next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    #[test]
    fn the_mode_is_the_kernels_own() {
        let of = |files: &[(&str, &str)]| mode(&TestTree::of(files).root());
        assert_eq!(of(&[(ENFORCE, "1"), (LSM, "capability,selinux\n")]).text(), "enforcing");
        assert_eq!(of(&[(ENFORCE, "0")]).text(), "permissive");
        assert!(matches!(of(&[(ENFORCE, "x")]), Reading::Unparsable(_)));
        assert_eq!(of(&[(LSM, "lockdown,capability,apparmor\n")]).text(), "disabled");
        assert!(of(&[(LSM, "capability,selinux\n")]).is_absent(), "it runs, in a mode that was not read");
        assert!(of(&[]).is_absent());
    }

    #[test]
    fn the_configuration_is_that_of_later_boots() {
        let of = |text: &str| configured(&TestTree::of(&[(CONFIG, text)]).root());
        assert_eq!(of("# SELINUX= can take\nSELINUX=disabled\nSELINUXTYPE=targeted\n").text(), "disabled");
        assert!(of("SELINUXTYPE=targeted\n").is_absent());
    }
}
