//! The grammar of names and values in plans.
//!
//! A plan can be made from a capture of an untrusted host, and root runs scripts, units and
//! profiles with its names and values. So each of them must fit its type before it enters a plan. A row
//! whose name or value does not fit is left out with the reason. Each export also escapes for its format.

use super::{Proposal, WhyLeftOut};
use crate::{Context, Setting, judge::first_of};
use lowlat_host::cmdline::LINE_BYTES_MAX;
use lowlat_host::{CpuSet, cmdline::split, resctrl::Group, snapshot::NapiField};

/// Longest path that Linux opens, in bytes, without the terminating zero (PATH_MAX).
const PATH_BYTES_MAX: usize = 4_095;
/// Longest name of a file (NAME_MAX).
const NAME_BYTES_MAX: usize = 255;
/// Longest name of a network interface (IFNAMSIZ, without the terminating zero).
const INTERFACE_BYTES_MAX: usize = 15;
/// Longest name of an interrupt handler, thread, idle state or workqueue. Handlers have no limit in the kernel.
const HANDLER_BYTES_MAX: usize = 128;
/// Characters of a value that a reason shows.
const SHOWN_CHARS: usize = 40;

/// A type of names or values.
pub(crate) struct Grammar {
    /// "the name of a network interface".
    what: &'static str,
    /// Description of valid texts, for errors.
    expected: &'static str,
    fits: fn(&str) -> bool,
}

pub(crate) const INTERFACE: Grammar = Grammar {
    what: "the name of a network interface",
    expected: "at most 15 letters, digits and _.-@+",
    fits: |text| is_name(text, INTERFACE_BYTES_MAX, "_.-@+"),
};
pub(crate) const QUEUE: Grammar =
    Grammar { what: "the name of a queue", expected: "rx-N or tx-N", fits: is_queue };
pub(crate) const NAPI: Grammar = Grammar {
    what: "the name of a NAPI instance's value",
    expected: "a queue or napi-N, and a value such as rx-0/gro-flush-timeout",
    fits: |text| {
        let is_name = |name: &str| is_queue(name) || name.strip_prefix("napi-").is_some_and(is_unsigned);
        NapiField::split(text).is_some_and(|(name, _)| is_name(name))
    },
};
pub(crate) const HANDLER: Grammar = Grammar {
    what: "the name of an interrupt handler, kernel thread or idle state",
    expected: "at most 128 letters, digits, spaces and _.,:@+/#=()[]-",
    fits: is_handler,
};
pub(crate) const UNIT: Grammar = Grammar {
    what: "the name of a unit",
    expected: "letters, digits and :_.@- with an ending such as .service",
    fits: |text| is_name(text, NAME_BYTES_MAX, ":_.@-") && text.contains('.'),
};
pub(crate) const UNIT_STATE: Grammar = Grammar {
    what: "the state of a unit",
    expected: "words such as inactive, disabled",
    fits: |text| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b"-, ".contains(&b))
    },
};
pub(crate) const PATH: Grammar = Grammar {
    what: "a path",
    expected: "an absolute path of letters, digits and _.,:@+!- in each component",
    fits: is_path,
};
pub(crate) const SYSCTL: Grammar = Grammar {
    what: "the name of a sysctl",
    expected: "letters, digits and _.-@+/ with a dot or slash between components",
    fits: |text| is_name(text, NAME_BYTES_MAX, "_.-@+/") && text.contains(['.', '/']),
};
pub(crate) const NUMBERS: Grammar = Grammar {
    what: "the value of a sysctl",
    expected: "integers or a CPU list",
    fits: |text| numbers(text).is_some(),
};
pub(crate) const CPU_LIST: Grammar =
    Grammar { what: "a CPU list", expected: "a list such as 0-3,8", fits: is_cpu_list };
pub(crate) const NUMBER: Grammar = Grammar { what: "a number", expected: "digits", fits: is_unsigned };
pub(crate) const WORD: Grammar = Grammar {
    what: "a value",
    expected: "a number, a CPU list, or a word of letters, digits and _.,:+-",
    fits: |text| is_word(text) || is_integer(text) || is_cpu_list(text),
};
/// A policy with its priority: "SCHED_FIFO 2".
pub(crate) const POLICY: Grammar = Grammar {
    what: "a scheduling policy",
    expected: "a policy and its priority, such as SCHED_FIFO 2",
    fits: |text| text.split(' ').all(is_word),
};
pub(crate) const GROUP_NAME: Grammar = Grammar {
    what: "the name of a group of resctrl",
    expected: "letters, digits and _-",
    fits: |text| is_name(text, NAME_BYTES_MAX, "_-"),
};
pub(crate) const CACHE_GROUP: Grammar = Grammar {
    what: "a group of resctrl",
    expected: "a line such as cpus=1-3 L3:0=ff0 MB:0=100",
    fits: |text| Group::parse_line(text).is_some_and(|group| group.to_line() == text),
};
pub(crate) const TEXT: Grammar = Grammar {
    what: "a file owned by lowlat",
    expected: "printable ASCII",
    fits: |text| text.bytes().all(|b| b == b'\n' || b == b' ' || b.is_ascii_graphic()),
};
pub(crate) const BOOT_NAME: Grammar = Grammar {
    what: "the name of a boot parameter",
    expected: "letters, digits and _.-",
    fits: |text| is_name(text, NAME_BYTES_MAX, "_.-"),
};
pub(crate) const BOOT_VALUE: Grammar = Grammar {
    what: "the value of a boot parameter",
    expected: "letters, digits and _.,:=+/@%~-",
    fits: |text| text.len() <= LINE_BYTES_MAX && text.bytes().all(is_boot_byte),
};

impl Setting {
    /// The row's proposal on this host, without names and values that do not fit their types.
    pub fn proposal(&self, context: &Context<'_>) -> Proposal {
        let mut proposal = match self.not_planned {
            "" => (self.change)(context, self),
            text => Proposal::not(self.why_not, text),
        };
        let mut reasons = Vec::new();
        proposal.steps.retain(|step| is_kept(step.target.kind().misfit(&step.after), &mut reasons));
        proposal.tokens.retain(|token| is_kept(token.misfit(), &mut reasons));
        if !reasons.is_empty() {
            proposal.left_out.push((WhyLeftOut::Unfit, first_of(&reasons, 1, ["", "; and "])));
        }
        proposal
    }
}

fn is_kept(misfit: Option<String>, reasons: &mut Vec<String>) -> bool {
    let fits = misfit.is_none();
    reasons.extend(misfit);
    fits
}

/// The first of several texts that does not fit, as a reason.
pub(crate) fn misfit(texts: &[(&Grammar, &str)]) -> Option<String> {
    let (kind, found) = texts.iter().find(|(kind, text)| !(kind.fits)(text))?;
    Some(format!("{} is \"{}\", expected {}", kind.what, shown(found), kind.expected))
}

/// The start of a text that does not fit, without characters that have a meaning in any format.
fn shown(text: &str) -> String {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || " _.,:/=-".contains(c);
    let mut shown: String =
        text.chars().take(SHOWN_CHARS).map(|c| if is_harmless(c) { c } else { '?' }).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// The value of a sysctl in its written form: integers separated by one space, or a CPU list. Every sysctl
/// of the catalogue uses one of the two.
pub fn numbers(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.is_empty() {
        return None;
    }
    let joined = words.join(" ");
    (words.iter().all(|word| is_integer(word)) || is_cpu_list(&joined)).then_some(joined)
}

/// True if both a sysctl's name and its value fit their types.
pub fn is_sysctl(name: &str, value: &str) -> bool {
    misfit(&[(&SYSCTL, name), (&NUMBERS, value)]).is_none()
}

/// True if a text is the name of a TuneD profile.
pub fn is_profile(name: &str) -> bool {
    is_name(name, NAME_BYTES_MAX, "_.-")
}

/// True if a word of a command line is safe to export: it contains nothing that a shell, a boot loader or TuneD
/// expands, and its quotes are closed.
pub fn is_boot_word(word: &str) -> bool {
    let is_byte = |byte: u8| is_boot_byte(byte) || matches!(byte, b'"' | b' ' | b'(' | b')');
    word.len() <= LINE_BYTES_MAX
        && word.bytes().all(is_byte)
        && word.bytes().filter(|byte| *byte == b'"').count().is_multiple_of(2)
}

/// The words of a command line that are safe to export, and the number of the others.
pub fn boot_line(line: &str) -> (String, usize) {
    let (kept, dropped): (Vec<&str>, Vec<&str>) =
        split(line).into_iter().partition(|word| is_boot_word(word));
    (kept.join(" "), dropped.len())
}

fn is_boot_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.,:=+/@%~-".contains(&byte)
}

/// A name of letters, digits and some punctuation. A leading dash would make it an option.
fn is_name(text: &str, bytes_max: usize, signs: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || signs.as_bytes().contains(&byte);
    !text.is_empty()
        && text.len() <= bytes_max
        && !text.starts_with('-')
        && text != "."
        && text != ".."
        && text.bytes().all(is_letter)
}

fn is_handler(text: &str) -> bool {
    is_name(text, HANDLER_BYTES_MAX, " _.,:@+/#=()[]-")
}

fn is_path(text: &str) -> bool {
    text.len() <= PATH_BYTES_MAX
        && text
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(|name| is_name(name, NAME_BYTES_MAX, "_.,:@+!-")))
}

fn is_queue(text: &str) -> bool {
    text.strip_prefix("rx-").or_else(|| text.strip_prefix("tx-")).is_some_and(is_unsigned)
}

fn is_unsigned(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_integer(text: &str) -> bool {
    is_unsigned(text.strip_prefix('-').unwrap_or(text))
}

fn is_cpu_list(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'-'))
        && CpuSet::parse_list(text).is_ok()
}

fn is_word(text: &str) -> bool {
    is_name(text, NAME_BYTES_MAX, "_.,:+-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_names_fit() {
        for name in ["eth0", "ens3f0np0", "enp65s0f1.100", "bond0", "veth@if2"] {
            assert!((INTERFACE.fits)(name), "{name}");
        }
        for name in [
            "mlx5_comp0@pci:0000:3b:00.0",
            "PCIe PME, pciehp",
            "ahci[0000:00:1f.2]",
            "kworker/R-rcu_g",
            "irq/45-nvme0q1",
            "C1_ACPI",
            "jbd2/sda1-8",
            "virtio0-input.0",
        ] {
            assert!((HANDLER.fits)(name), "{name}");
        }
        for path in ["/sys/block/cciss!c0d0/queue/scheduler", "/sys/devices/pci0000:00/0000:00:02.0/x"] {
            assert!(is_path(path), "{path}");
        }
        assert_eq!(numbers("4096\t87380  6291456").as_deref(), Some("4096 87380 6291456"));
        assert_eq!(numbers("-1").as_deref(), Some("-1"));
        assert_eq!(numbers("0-3,8").as_deref(), Some("0-3,8"));
    }

    const PAYLOADS: [&str; 13] = [
        "${f:exec:id}",
        "$(id)",
        "`id`",
        "a\nb",
        "a;b",
        "a'b",
        "a\"b",
        "{{ x }}",
        "{% x %}",
        "a\0",
        "\u{202e}a",
        "a\u{2028}b",
        "a\\",
    ];

    #[test]
    fn what_a_format_could_expand_fits_no_type() {
        let kinds = [
            &INTERFACE,
            &QUEUE,
            &HANDLER,
            &UNIT,
            &UNIT_STATE,
            &PATH,
            &SYSCTL,
            &NUMBERS,
            &CPU_LIST,
            &NUMBER,
            &WORD,
            &POLICY,
            &GROUP_NAME,
            &CACHE_GROUP,
            &BOOT_NAME,
            &BOOT_VALUE,
        ];
        for kind in kinds {
            for payload in PAYLOADS {
                assert!(!(kind.fits)(payload), "{}: {payload:?}", kind.what);
                assert!(!(kind.fits)(&format!("/sys/a{payload}")), "{}: {payload:?}", kind.what);
            }
            for option in ["-x", "--x=y"] {
                assert!(!(kind.fits)(option) || kind.what == BOOT_VALUE.what, "{}: {option}", kind.what);
            }
            let long = "abcdefg-/".repeat(1_000);
            assert!(!(kind.fits)(&long), "{}", kind.what);
        }
        for path in ["/a/../b", "/a//b", "/a/", "a", "/a/."] {
            assert!(!is_path(path), "{path}");
        }
        for word in ["ds=nocloud;s=x", "a=$(id)", "a=`id`", "x=\"a b", "a={{b}}"] {
            assert!(!is_boot_word(word), "{word}");
        }
        assert!(is_boot_word("dyndbg=\"file a.c +p\""));
    }

    #[test]
    fn a_reason_shows_the_beginning_without_signs() {
        let reason = misfit(&[(&INTERFACE, "eth0$(id)\n")]).unwrap_or_default();
        assert_eq!(
            reason,
            "the name of a network interface is \"eth0??id??\", expected at most 15 letters, digits and _.-@+"
        );
    }
}
