//! `lowlat cache partition` on captured hosts with a folder that stands in for resctrl.

use crate::common::{self, text};
use lowlat_host::CpuSet;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// A CPU's allocation: its files, the number of CPUs per cache, and the expected group and default group.
struct Cpu {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    group: &'static str,
    others: &'static str,
}

const CPUS: &[Cpu] = &[
    Cpu {
        name: "Intel: devices share the upper two of 11 ways, bandwidth in percent",
        files: &[
            ("schemata", "    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n"),
            ("info/L3/cbm_mask", "7ff\n"),
            ("info/L3/min_cbm_bits", "1\n"),
            ("info/L3/shareable_bits", "600\n"),
            ("info/L3/num_closids", "16\n"),
            ("info/MB/num_closids", "8\n"),
            ("info/MB/bandwidth_gran", "10\n"),
            ("info/MB/min_bandwidth", "10\n"),
        ],
        group: "cpus=2-7,10-15 L3:0=ff;1=ff MB:0=100;1=100",
        others: "L3:0=700;1=700 MB:0=50;1=50",
    },
    Cpu {
        name: "Intel with code and data apart",
        files: &[
            ("schemata", "L3CODE:0=fffff;1=fffff\nL3DATA:0=fffff;1=fffff\n"),
            ("info/L3CODE/cbm_mask", "fffff\n"),
            ("info/L3CODE/min_cbm_bits", "2\n"),
            ("info/L3DATA/cbm_mask", "fffff\n"),
            ("info/L3DATA/min_cbm_bits", "2\n"),
        ],
        group: "cpus=2-7,10-15 L3CODE:0=7fff;1=7fff L3DATA:0=7fff;1=7fff",
        others: "L3CODE:0=f8000;1=f8000 L3DATA:0=f8000;1=f8000",
    },
    Cpu {
        name: "AMD: no minimum, bandwidth in eighths of GB/s",
        files: &[
            ("schemata", "    MB:0=2048;1=2048\n    L3:0=ffff;1=ffff\n"),
            ("info/L3/cbm_mask", "ffff\n"),
            ("info/L3/min_cbm_bits", "0\n"),
            ("info/L3/shareable_bits", "0\n"),
            ("info/L3/sparse_masks", "1\n"),
            ("info/MB/bandwidth_gran", "1\n"),
            ("info/MB/min_bandwidth", "1\n"),
        ],
        group: "cpus=2-7,10-15 L3:0=fff;1=fff MB:0=2048;1=2048",
        others: "L3:0=f000;1=f000 MB:0=2048;1=2048",
    },
];

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(common::folder());
        common::unpack("smt-2s", &tree.root());
        for cpu in CpuSet::parse_list("0-15").unwrap().iter() {
            tree.put(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/id"), &format!("{}\n", cpu / 8));
        }
        for (file, text) in files {
            tree.put(&format!("sys/fs/resctrl/{file}"), text);
        }
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("host")
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root().join("sys/fs/resctrl").join(path)).unwrap_or_default()
    }

    fn lowlat(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(common::binary());
        command.args(arguments).arg("--root").arg(self.root()).stdin(Stdio::null()).output().unwrap()
    }

    /// The planned groups, and the exit code.
    fn plan(&self) -> (Option<i32>, Vec<(String, String)>) {
        let output = self.lowlat(&["cache", "partition", "--dry-run", "--json"]);
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let changes = plan["changes"].as_array().cloned().unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let groups = changes.iter().map(|change| (word(&change["target"]["group"]), word(&change["after"])));
        (output.status.code(), groups.collect())
    }
}

#[test]
fn each_cpu_gets_masks_that_it_permits() {
    for cpu in CPUS {
        let (status, groups) = Tree::new(cpu.files).plan();
        let wanted = [("lowlat", cpu.group), ("default", cpu.others)];
        let wanted = wanted.map(|(name, line)| (name.to_owned(), line.to_owned()));
        assert_eq!((status, groups.as_slice()), (Some(1), wanted.as_slice()), "{}", cpu.name);
    }
}

#[test]
fn a_partition_is_applied_verified_and_rolled_back() {
    let tree = Tree::new(CPUS[0].files);
    let before = tree.text("schemata");
    let applied = tree.lowlat(&["cache", "partition", "--yes"]);
    assert_eq!(applied.status.code(), Some(0), "{}{}", text(&applied.stdout), text(&applied.stderr));
    assert_eq!(tree.text("lowlat/schemata"), "L3:0=ff;1=ff\nMB:0=100;1=100\n");
    assert_eq!(tree.text("lowlat/cpus_list"), "2-7,10-15\n");
    assert_eq!(tree.text("schemata"), "L3:0=700;1=700\nMB:0=50;1=50\n");
    assert_eq!(tree.plan(), (Some(0), Vec::new()));
    let verified = tree.lowlat(&["tune", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stdout));

    // Another program takes the ways back.
    tree.put("sys/fs/resctrl/schemata", &before);
    let verified = tree.lowlat(&["tune", "verify"]);
    assert_eq!(verified.status.code(), Some(1));
    assert!(text(&verified.stdout).contains("resctrl, all other CPUs"), "{}", text(&verified.stdout));
    tree.put("sys/fs/resctrl/schemata", "L3:0=700;1=700\nMB:0=50;1=50\n");

    let rolled_back = tree.lowlat(&["tune", "rollback", "--yes"]);
    assert_eq!(rolled_back.status.code(), Some(0), "{}", text(&rolled_back.stderr));
    assert!(!tree.root().join("sys/fs/resctrl/lowlat").exists());
    assert_eq!(tree.text("schemata"), "L3:0=7ff;1=7ff\nMB:0=100;1=100\n");
}

#[test]
fn what_belongs_to_another_program_stays() {
    let pqos = [("COS1/schemata", "L3:0=f;1=f\nMB:0=100;1=100\n"), ("COS1/cpus_list", "3\n")];
    let limited = [("schemata", "L3:0=ff;1=7ff\nMB:0=100;1=100\n")];
    for (more, words) in [(&pqos[..], "groups COS1"), (&limited[..], "default group")] {
        let tree = Tree::new(&[CPUS[0].files, more].concat());
        let output = tree.lowlat(&["cache", "partition", "--yes"]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words) && said.contains("hint:"), "{said}");
        assert!(!tree.root().join("sys/fs/resctrl/lowlat").exists());
        let audit = tree.lowlat(&["audit"]);
        assert!(text(&audit.stdout).contains("sysfs.resctrl.ways"), "{}", text(&audit.stdout));
    }
}

#[test]
fn a_cpu_without_allocation_is_named_and_one_with_it_is_mounted_first() {
    let none = Tree::new(&[]).lowlat(&["cache", "partition", "--dry-run"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("this CPU has no cache allocation"), "{}", text(&none.stderr));

    let tree = Tree::new(&[]);
    let path = tree.root().join("proc/cpuinfo");
    let flags = fs::read_to_string(&path).unwrap().replace("flags\t\t: fpu", "flags\t\t: cat_l3 fpu");
    fs::write(&path, flags).unwrap();
    let output = tree.lowlat(&["cache", "partition", "--dry-run"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stderr));
    assert!(said.contains("sys-fs-resctrl.mount") && said.contains("once resctrl is mounted"), "{said}");
}
