//! A key below /proc/sys.

use crate::change::{
    Kind, Mechanism, Rival,
    grammar::{NUMBERS, SYSCTL, misfit},
    kind::watch,
};
use crate::{judge::chosen_word, same_meaning};
use lowlat_host::{HostSnapshot, Reading, snapshot::sysctl_path};

pub(super) struct Sysctl<'a> {
    pub(super) key: &'a str,
}

impl Kind for Sysctl<'_> {
    fn name(&self) -> String {
        self.key.to_owned()
    }

    fn separator(&self) -> &'static str {
        " = "
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&SYSCTL, self.key), (&NUMBERS, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::Value { path: sysctl_path(self.key) }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        host.sysctl(self.key).map(|text| chosen_word(text.trim()).to_owned())
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        host.files.insert(sysctl_path(self.key), Reading::Known(value.to_owned()));
    }

    /// Reverse path filtering uses the larger of an interface's value and the one for all
    /// (Documentation/networking/ip-sysctl.rst).
    fn without_effect(&self, host: &HostSnapshot, observed: &str, after: &str) -> Option<String> {
        let name = self.key.strip_prefix("net.ipv4.conf.")?.strip_suffix(".rp_filter")?;
        if matches!(name, "all" | "default") || !same_meaning(observed, after) {
            return None;
        }
        let all = host.sysctl("net.ipv4.conf.all.rp_filter");
        let (all, planned): (u32, u32) = (all.text().trim().parse().ok()?, after.trim().parse().ok()?);
        (all > planned).then(|| {
            format!(
                "net.ipv4.conf.all.rp_filter is {all}, and the kernel uses the larger of the two for {name}"
            )
        })
    }

    fn rivals(&self) -> Vec<Rival> {
        vec![Rival::Sysctl(self.key.to_owned())]
    }

    fn how_to_find(&self) -> String {
        watch(&sysctl_path(self.key))
    }
}
