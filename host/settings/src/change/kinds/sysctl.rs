//! A key below /proc/sys.

use crate::change::{
    Kind, KindFacts, Mechanism, Rival,
    grammar::{NUMBERS, SYSCTL},
    kind::watch,
};
use crate::{judge::chosen_word, same_meaning};
use lowlat_host::{HostSnapshot, Reading, snapshot::sysctl_path};

pub(super) struct Sysctl<'a> {
    pub(super) key: &'a str,
}

impl Kind for Sysctl<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let path = sysctl_path(self.key);
        KindFacts {
            separator: " = ",
            rivals: vec![Rival::Sysctl(self.key.to_owned())],
            how_to_find: watch(&path),
            ..KindFacts::of(self.key, Mechanism::Value { path }, &[(&SYSCTL, self.key)], &NUMBERS)
        }
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
}
