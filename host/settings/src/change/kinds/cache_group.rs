//! Contents of a group of resctrl: its CPUs, ways and bandwidth, as one line, or "none".

use crate::change::{
    Kind, KindFacts, Mechanism,
    grammar::{CACHE_GROUP, GROUP_NAME},
};
use lowlat_host::{
    HostSnapshot, Reading,
    resctrl::{DEFAULT_GROUP, Group, MOUNT, Resctrl},
};

/// The value if the group does not exist.
const NONE: &str = "none";

pub(super) struct CacheGroup<'a> {
    pub(super) group: &'a str,
}

impl CacheGroup<'_> {
    fn path(&self, file: &str) -> String {
        if self.group == DEFAULT_GROUP {
            format!("{MOUNT}/{file}")
        } else {
            format!("{MOUNT}/{}/{file}", self.group)
        }
    }
}

impl Kind for CacheGroup<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let group = self.group;
        let name =
            if group == DEFAULT_GROUP { "all other CPUs".to_owned() } else { format!("group {group}") };
        KindFacts {
            title: format!("resctrl, {name}"),
            how_to_find: "to find the cause: programs that use resctrl, such as pqos, containers with intel-rdt, and libvirt"
                .to_owned(),
            ..KindFacts::of(name, Mechanism::CacheGroup { group }, &[(&GROUP_NAME, group)], &CACHE_GROUP)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let Some(resctrl) = Resctrl::of(host) else { return Reading::Absent };
        Reading::Known(resctrl.group(self.group).map_or_else(|| NONE.to_owned(), |group| group.to_line()))
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let files = [self.path("schemata"), self.path("cpus_list")];
        let Some(group) = Group::parse_line(value) else {
            for path in files {
                host.files.remove(&path);
            }
            return;
        };
        let lines: Vec<String> = group.schemata.lines().collect();
        for (path, text) in files.into_iter().zip([lines.join("\n"), group.cpus.to_list()]) {
            host.files.insert(path, Reading::Known(text));
        }
    }
}
