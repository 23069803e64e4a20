//! A playbook that applies the plan to hosts and keeps it in effect.

use super::brief::Brief;
use super::grub::BootChange;
use super::steps::steps;
use super::sysctl::{Keys, named};
use super::systemd::service;
use super::text::{one_line, put, yaml};
use super::{ExportedFile, Format};
use lowlat_settings::change::Target;

pub(super) const FORMAT: Format =
    Format { name: "ansible", about: "a playbook: sysctls, files, boot parameters, one-time.service", files };

const PLAYBOOK: &str = include_str!("sh/playbook.yml");
const README: &str = include_str!("sh/ansible-readme.txt");

fn files(brief: &Brief<'_>) -> Vec<ExportedFile> {
    let file = |path: &str, text| ExportedFile { path: path.to_owned(), is_program: false, text };
    let boot = BootChange::of(brief);
    let mut files = vec![
        file("lowlat.yml", playbook(brief, &boot)),
        file("requirements.yml", "---\ncollections:\n  - name: ansible.posix\n".to_owned()),
        file("README", readme(brief)),
        file("expected-cmdline", format!("{}\n", brief.planned_line())),
    ];
    if !boot.is_empty() {
        files.push(file("files/etc/default/grub.d/zz-lowlat.cfg", boot.drop_in(brief)));
    }
    files.extend(
        service(brief, &steps(brief))
            .into_iter()
            .map(|file| ExportedFile { path: format!("files/{}", file.path), ..file }),
    );
    files
}

fn playbook(brief: &Brief<'_>, boot: &BootChange) -> String {
    let mut text = String::from("---\n");
    text.push_str(&brief.header("# ", "Low-latency settings for the hosts of the group lowlat."));
    text.push_str(PLAYBOOK_HEAD);
    put(
        &mut text,
        format_args!("    lowlat_online_cpus: {}\n", yaml(&brief.context.host.topology.online.to_list())),
    );
    put(
        &mut text,
        format_args!("    lowlat_sysctl_file: {}\n", yaml(&format!("/etc/sysctl.d/{}", named(brief).path))),
    );
    text.push_str("    lowlat_sysctls:");
    text.push_str(&list(Keys::of(brief).set.iter().map(|key| (key.name.as_str(), key.value.as_str()))));
    text.push_str("    lowlat_boot_words:");
    text.push_str(&words(&boot.words));
    text.push_str("    lowlat_boot_replaced:");
    text.push_str(&words(&boot.replaced));
    text.push_str(&tasks(brief, boot));
    text
}

const PLAYBOOK_HEAD: &str =
    "- name: Tune for low latency\n  hosts: lowlat\n  become: true\n  gather_facts: true\n\n  vars:\n";

fn list<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut items = String::new();
    for (key, value) in pairs {
        put(
            &mut items,
            format_args!(
                "      - {{key: {}, value: {}}}
",
                yaml(key),
                yaml(value)
            ),
        );
    }
    if items.is_empty() { " []\n".to_owned() } else { format!("\n{items}") }
}

fn words(words: &[String]) -> String {
    let mut items = String::new();
    for word in words {
        put(
            &mut items,
            format_args!(
                "      - {}
",
                yaml(word)
            ),
        );
    }
    if items.is_empty() { " []\n".to_owned() } else { format!("\n{items}") }
}

/// The tasks that depend on the plan, inserted at their names in the playbook.
fn tasks(brief: &Brief<'_>, boot: &BootChange) -> String {
    let irqbalance = brief.context.host.services.units.contains_key("irqbalance.service");
    let mut text = String::new();
    let mut is_kept = true;
    for line in PLAYBOOK.lines() {
        // "#if NAME" and "#end" enclose optional tasks.
        match line.trim() {
            "#if boot" => is_kept = !boot.is_empty(),
            "#if irqbalance" => is_kept = irqbalance,
            "#end" => is_kept = true,
            "#file-keys" => text.push_str(&file_keys(brief)),
            _ if is_kept => {
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    text
}

/// One line of files of other packages.
fn file_keys(brief: &Brief<'_>) -> String {
    let mut text = String::new();
    for change in &brief.plan.changes {
        let Target::FileKey { path, key } = &change.target else { continue };
        let (path, key, value) = (one_line(path), one_line(key), one_line(&change.after));
        put(
            &mut text,
            format_args!(
                "    - name: {}\n      ansible.builtin.lineinfile:\n        path: {}\n        regexp: {}\n        line: {}\n\n",
                yaml(&format!("Set {key} in {path}")),
                yaml(&path),
                yaml(&format!("^\\s*{}\\s*=", key.replace('.', "\\."))),
                yaml(&format!("{key} = {value}")),
            ),
        );
    }
    text
}

fn readme(brief: &Brief<'_>) -> String {
    let mut text = brief.readme_head("Playbook for low latency");
    text.push_str(README);
    for part in [
        brief.warnings("", |_| true),
        brief.left_out("", |left| {
            left.setting != "service.one_time" && left.setting != "sysctl.file.100-lowlatency"
        }),
    ] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}
