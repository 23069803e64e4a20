//! Contents of a group of resctrl: its CPUs, ways and bandwidth, as one line, or "none".

use crate::change::{
    Kind, Mechanism,
    grammar::{CACHE_GROUP, GROUP_NAME, misfit},
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
    fn name(&self) -> String {
        if self.group == DEFAULT_GROUP {
            "all other CPUs".to_owned()
        } else {
            format!("group {}", self.group)
        }
    }

    fn title(&self) -> String {
        format!("resctrl, {}", self.name())
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&GROUP_NAME, self.group), (&CACHE_GROUP, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::CacheGroup { group: self.group }
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

    fn how_to_find(&self) -> String {
        "to find the cause: programs that use resctrl, such as pqos, containers with intel-rdt, and libvirt"
            .to_owned()
    }
}
