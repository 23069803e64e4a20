//! A captured host unpacked into a directory, with stand-ins for the programs that scripts call.

use crate::common::{self, programs::write_program};
use lowlat_host::CpuSet;
use lowlat_settings::change::{Target, Wire};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Mode of each path of the tree, and its bytes or the target of the link.
pub type Places = BTreeMap<PathBuf, (u32, Vec<u8>)>;

pub struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    pub fn new(host: &str) -> Self {
        let tree = Self { dir: common::folder() };
        common::unpack(host, tree.root());
        for (name, text) in PROGRAMS {
            tree.program(name, text);
        }
        tree.write("proc/sys/kernel/random/boot_id", "11111111-1111-4111-8111-111111111111\n");
        tree.write("ethtool/ens2.rx-usecs", "3\n");
        tree.write("ethtool/ens2.combined", "8\n");
        tree
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// A place by its path on the host.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file of the tree");
    }

    /// Writes an executable program into the tree.
    pub fn program(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        write_program(&path, text);
    }

    /// Everything in it, links as links. The stand-ins keep the state of services and the menu that they generate apart.
    pub fn places(&self) -> Places {
        let mut places = Places::new();
        let mut directories = vec![self.root().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).expect("a directory").map(|entry| entry.expect("an entry"))
            {
                let path = entry.path();
                let metadata = fs::symlink_metadata(&path).expect("a place");
                let holds = if metadata.is_symlink() {
                    fs::read_link(&path).expect("a link").as_os_str().as_encoded_bytes().to_vec()
                } else if metadata.is_dir() {
                    directories.push(path.clone());
                    Vec::new()
                } else {
                    fs::read(&path).expect("a file")
                };
                let name = path.strip_prefix(self.root()).expect("a place below the root").to_owned();
                places.insert(name, (metadata.permissions().mode(), holds));
            }
        }
        places
    }

    /// Runs a script on the tree.
    pub fn run(&self, shell: &str, script: &str, verb: &str) -> Output {
        let file = self.dir.path().with_extension("sh");
        fs::write(&file, script).expect("the script");
        let output = Command::new(shell).arg(&file).arg(verb).env("LOWLAT_ROOT", self.root()).output();
        fs::remove_file(&file).expect("the script");
        output.expect("a shell")
    }

    /// Value that the host would show for a target of a plan; `None` if a tree cannot show it.
    pub fn shows(&self, target: &Target) -> Option<String> {
        let first = |path: &str| self.read(path).lines().next().unwrap_or_default().to_owned();
        let mask = |path: &str| CpuSet::parse_mask(&first(path)).expect("a mask").to_list();
        Some(match target {
            Target::Sysctl { key } => first(&format!("/proc/sys/{}", key.replace('.', "/"))),
            Target::File { path } => first(path),
            Target::IrqAffinity { irq, .. } => first(&format!("/proc/irq/{irq}/smp_affinity_list")),
            Target::DefaultIrqAffinity => mask("/proc/irq/default_smp_affinity"),
            Target::WorkqueueCpus { name: None } => mask("/sys/devices/virtual/workqueue/cpumask"),
            Target::WorkqueueCpus { name: Some(name) } => {
                mask(&format!("/sys/bus/workqueue/devices/{name}/cpumask"))
            }
            Target::KernelThreadAffinity { pid, .. } => {
                let status = self.read(&format!("/proc/{pid}/status"));
                let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
                line.expect("the CPUs").trim().to_owned()
            }
            Target::KernelThreadScheduling { pid, .. } => first(&format!("/proc/{pid}/scheduling")),
            Target::Nic(target) if matches!(target.kind.ethtool()?.wire, Wire::Fields { .. }) => {
                first(&format!("/ethtool/{}.{}", target.nic, target.name))
            }
            Target::OwnedFile { path } => self.read(path),
            Target::FileKey { path, key } => {
                let text = self.read(path);
                let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
                line.expect("the key").to_owned()
            }
            Target::Service { unit } => first(&format!("/services/{unit}")),
            _ => return None,
        })
    }
}

/// Stand-ins: each does to the tree what the program would do to the host.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "usr/bin/taskset",
        "#!/bin/sh\nhere=${0%/usr/bin/taskset}\n[ \"$1\" = -pc ] || exit 1\n\
         if [ -e \"$here/kill-at\" ]; then\nrm \"$here/kill-at\"\npid=$PPID\n\
         while grep -q '[.]sh' \"/proc/$pid/cmdline\"; do\nscript=$pid\nstat=$(cat \"/proc/$pid/stat\")\n\
         set -- ${stat##*) }\npid=$2\ndone\nkill -9 \"$script\" \"$PPID\"\nexit 1\nfi\n\
         sed -i \"s/^Cpus_allowed_list:.*/Cpus_allowed_list:\\t$2/\" \"$here/proc/$3/status\"\n",
    ),
    (
        "usr/bin/chrt",
        "#!/bin/sh\nhere=${0%/usr/bin/chrt}\n[ \"$2\" = -p ] || exit 1\n\
         case $1 in -f) policy=1 name=\"SCHED_FIFO $3\";; -o) policy=0 name=SCHED_OTHER;; *) exit 1;; esac\n\
         stat=$(cat \"$here/proc/$4/stat\")\nhead=${stat%)*}\nset -- \"$3\" \"$4\" ${stat##*) }\n\
         priority=$1 pid=$2\nshift 2\nrest=\nat=1\n\
         for field; do case $at in 38) field=$priority;; 39) field=$policy;; esac; rest=\"$rest $field\"; at=$((at + 1)); done\n\
         printf '%s)%s\\n' \"$head\" \"$rest\" > \"$here/proc/$pid/stat\"\n\
         if [ \"$policy\" = 0 ]; then rm -f \"$here/proc/$pid/scheduling\"; else echo \"$name\" > \"$here/proc/$pid/scheduling\"; fi\n",
    ),
    (
        "usr/sbin/update-grub",
        "#!/bin/sh\nhere=${0%/usr/sbin/update-grub}\n\
         if [ -e \"$here/boot-is-full\" ]; then\necho 'No space left on device' >&2\nexit 1\nfi\nmkdir -p \"$here/boot/grub\"\nGRUB_CMDLINE_LINUX_DEFAULT=quiet\n\
         GRUB_CMDLINE_LINUX=console=ttyS0\nfor file in \"$here\"/etc/default/grub.d/*.cfg; do\n\
         if [ -e \"$file\" ]; then . \"$file\"; fi\ndone\n\
         echo \"linux ro $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT\" > \"$here/boot/grub/grub.cfg\"\n",
    ),
    (
        "usr/sbin/ethtool",
        "#!/bin/sh\nstate=${0%/usr/sbin/ethtool}/ethtool\ncase $1 in\n\
         -l) printf 'Channel parameters for %s:\\nPre-set maximums:\\nRX:\\t\\tn/a\\nCombined:\\t8\\n' \"$2\"\n\
         printf 'Current hardware settings:\\nRX:\\t\\tn/a\\nCombined:\\t%s\\n' \"$(cat \"$state/$2.combined\")\";;\n\
         -c) printf 'Coalesce parameters for %s:\\nAdaptive RX: off  TX: off\\nrx-usecs:\\t%s\\nrx-frames:\\tn/a\\n' \
         \"$2\" \"$(cat \"$state/$2.rx-usecs\")\";;\n\
         -L | -C) printf '%s\\n' \"$4\" > \"$state/$2.$3\";;\n*) exit 1;;\nesac\n",
    ),
    (
        "usr/bin/systemctl",
        "#!/bin/sh\nstate=${0%/usr/bin/systemctl}/services\nread_state() { read -r active boot < \"$state/$1\" || exit 1; }\n\
         case $1 in\ndaemon-reload | try-restart | is-system-running | show) ;;\n\
         is-active) [ -e \"$state/$2\" ] || { echo inactive; exit 3; }; read_state \"$2\"; echo \"${active%,}\";;\n\
         is-enabled) [ -e \"$state/$2\" ] || { echo not-found; exit 4; }; read_state \"$2\"; echo \"$boot\";;\n\
         stop | start) read_state \"$2\"; if [ \"$1\" = stop ]; then active=inactive; else active=active; fi\n\
         echo \"$active, $boot\" > \"$state/$2\";;\n\
         disable | enable) read_state \"$2\"; echo \"$active ${1}d\" > \"$state/$2\";;\n*) exit 1;;\nesac\n",
    ),
];
