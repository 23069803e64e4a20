//! A host of each family as a tree of files.

use crate::{common, common::binary};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Debian,
    RedHat,
}

pub const FAMILIES: [Family; 2] = [Family::Debian, Family::RedHat];

/// GRUB with a menu that its generator writes, and a folder of drop-ins.
const DEBIAN: [(&str, &str); 4] = [
    ("etc/debian_version", "12.5\n"),
    ("usr/sbin/grub-mkconfig", "for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n  . \"${x}\"\ndone\n"),
    ("etc/default/grub", "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n"),
    (
        "boot/grub/grub.cfg",
        "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Debian GNU/Linux' $menuentry_id_option 'gnulinux-simple-0c8' {\n\
         \tlinux\t/boot/vmlinuz-6.1.0-50-amd64 root=UUID=0c8 ro quiet\n\tinitrd\t/boot/initrd.img-6.1.0-50-amd64\n}\n\
         ### END /etc/grub.d/10_linux ###\n",
    ),
];

/// GRUB that reads entries of the Boot Loader Specification.
const RED_HAT: [(&str, &str); 4] = [
    (
        "boot/grub2/grub.cfg",
        "### BEGIN /etc/grub.d/10_linux ###\nset default=\"${saved_entry}\"\ninsmod blscfg\nblscfg\n\
         ### END /etc/grub.d/10_linux ###\n",
    ),
    ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"crashkernel=auto rhgb quiet\"\nGRUB_ENABLE_BLSCFG=true\n"),
    (
        "boot/loader/entries/3a17f34dc2694acda37caa478a339408-5.14.0-427.el9.x86_64.conf",
        "title Red Hat Enterprise Linux (5.14.0-427.el9.x86_64) 9.4 (Plow)\nversion 5.14.0-427.el9.x86_64\n\
         linux /vmlinuz-5.14.0-427.el9.x86_64\ninitrd /initramfs-5.14.0-427.el9.x86_64.img\n\
         options root=/dev/mapper/rhel-root ro crashkernel=auto rhgb quiet\ngrub_class kernel\n",
    ),
    (
        "boot/loader/entries/3a17f34dc2694acda37caa478a339408-0-rescue.conf",
        "title Red Hat Enterprise Linux (0-rescue) 9.4 (Plow)\nversion 0-rescue\nlinux /vmlinuz-0-rescue\n\
         initrd /initramfs-0-rescue.img\noptions root=/dev/mapper/rhel-root ro\ngrub_class kernel\n",
    ),
];

/// The files of a tree, by path: kind, mode, owner, length, time of change and content.
pub type Files = BTreeMap<String, String>;

pub struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    pub fn new(family: Family) -> Self {
        let tree = Self { dir: common::folder() };
        common::unpack("epyc-7f32-2x8", &tree.root());
        let files = match family {
            Family::Debian => &DEBIAN,
            Family::RedHat => &RED_HAT,
        };
        for (path, text) in files {
            tree.put(path, text);
        }
        if family == Family::RedHat {
            fs::remove_file(tree.path("etc/os-release")).unwrap();
            tree.put(
                "etc/os-release",
                "ID=\"rhel\"\nVERSION_ID=\"9.4\"\nPRETTY_NAME=\"Red Hat Enterprise Linux 9.4\"\n",
            );
        }
        // The program that the service of the next boot runs.
        tree.put("usr/local/sbin/lowlat", "binary");
        fs::set_permissions(tree.path("usr/local/sbin/lowlat"), fs::Permissions::from_mode(0o755)).unwrap();
        tree
    }

    /// A tree to which a plan is applied, and its files from before; `None`, with a message, for an ordinary user.
    pub fn applied(family: Family) -> Option<(Self, Files)> {
        if !is_root() {
            return None;
        }
        let tree = Self::new(family);
        let start = tree.files();
        let output = tree.tune(&["apply", "--yes"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(tree.path("var/lib/lowlat/in-force.json").exists(), "{}", said(&output));
        Some((tree, start))
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("host")
    }

    /// A place outside of the tree.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.arg("tune").args(arguments).arg("--root").arg(self.root()).stdin(Stdio::null());
        command
    }

    pub fn tune(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    /// Everything but lowlat's own files.
    pub fn files(&self) -> Files {
        let mut files = Files::new();
        walk(&self.root(), Path::new(""), &|path| !path.starts_with("var"), &mut files);
        files
    }

    pub fn all_files(&self) -> Files {
        let mut files = Files::new();
        walk(&self.root(), Path::new(""), &|_| true, &mut files);
        files
    }
}

pub fn files_in(dir: &Path) -> Files {
    let mut files = Files::new();
    walk(dir, Path::new(""), &|_| true, &mut files);
    files
}

fn walk(root: &Path, at: &Path, wanted: &dyn Fn(&Path) -> bool, files: &mut Files) {
    for entry in fs::read_dir(root.join(at)).unwrap().map(Result::unwrap) {
        let (path, meta) = (at.join(entry.file_name()), entry.metadata().unwrap());
        if !wanted(&path) {
            continue;
        }
        let shown = path.display().to_string();
        let mut text = format!("{:o} {}:{} ", meta.mode(), meta.uid(), meta.gid());
        if meta.is_dir() {
            files.insert(shown, text);
            walk(root, &path, wanted, files);
            continue;
        }
        if meta.is_symlink() {
            write!(text, "-> {}", fs::read_link(root.join(&path)).unwrap().display()).unwrap();
        } else {
            let content = fs::read(root.join(&path)).unwrap();
            // Of a kernel attribute, only the value counts, or the word in brackets if there is one.
            if shown.starts_with("proc/") || shown.starts_with("sys/") {
                let content = String::from_utf8_lossy(&content).into_owned();
                let chosen =
                    content.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0.to_owned()));
                text += chosen.as_deref().unwrap_or(content.trim_end());
            } else {
                write!(text, "{}.{:09} ", meta.mtime(), meta.mtime_nsec()).unwrap();
                text += &String::from_utf8_lossy(&content);
            }
        }
        files.insert(shown, text);
    }
}

/// Files that differ, one line each.
pub fn differences(a: &Files, b: &Files) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differing = names.into_iter().filter(|name| a.get(*name) != b.get(*name));
    differing.map(|name| format!("{name}: {:?} / {:?}", a.get(name), b.get(name))).collect()
}

/// Output of a command, stdout before stderr.
pub fn said(output: &Output) -> String {
    common::text(&output.stdout) + &common::text(&output.stderr)
}

/// The files that lowlat writes belong to root.
#[track_caller]
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!(
            "skipped: {}: takes root, since lowlat's files belong to root",
            std::panic::Location::caller()
        );
    }
    is_root
}
