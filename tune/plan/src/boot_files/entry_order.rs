//! Finds the entry of /boot/loader/entries that boots: sorts and chooses as the boot loaders do.

use super::entry;
use std::cmp::Ordering;

/// An entry as a file: its name without ".conf", and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFile {
    pub id: String,
    pub text: String,
}

impl EntryFile {
    fn first(&self, key: &str) -> &str {
        entry::values(&self.text, key).first().copied().unwrap_or_default()
    }

    /// The name without the counter of tries that some hosts have in it: `arch+2-1` is `arch`.
    pub fn plain_id(&self) -> &str {
        match self.id.rsplit_once('+') {
            Some((id, tries)) if tries.starts_with(|c: char| c.is_ascii_digit()) => id,
            _ => &self.id,
        }
    }
}

/// Compares versions: runs of digits as numbers, runs of letters as text, digits above letters. Other characters only
/// separate. A `~` sorts below everything.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    let is_sign = |c: char| !c.is_ascii_alphanumeric() && c != '~';
    loop {
        a = a.trim_start_matches(is_sign);
        b = b.trim_start_matches(is_sign);
        match (a.starts_with('~'), b.starts_with('~')) {
            (true, true) => {
                a = a.trim_start_matches('~');
                b = b.trim_start_matches('~');
                continue;
            }
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        if a.is_empty() || b.is_empty() {
            return a.len().cmp(&b.len());
        }
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let order = match (is_number(a), is_number(b)) {
            (true, true) => {
                let digits =
                    |text: &mut &str| run(text, |c| c.is_ascii_digit()).trim_start_matches('0').to_owned();
                let (x, y) = (digits(&mut a), digits(&mut b));
                x.len().cmp(&y.len()).then_with(|| x.cmp(&y))
            }
            (false, false) => {
                let letters = |text: &mut &str| run(text, |c| c.is_ascii_alphabetic()).to_owned();
                letters(&mut a).cmp(&letters(&mut b))
            }
            (a_is, b_is) => a_is.cmp(&b_is),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Takes the leading characters of one class off a text.
fn run<'a>(text: &mut &'a str, is: impl Fn(char) -> bool) -> &'a str {
    let end = text.find(|c| !is(c)).unwrap_or(text.len());
    let (run, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    *text = rest;
    run
}

/// Sort order of entries in a build of GRUB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Red Hat's: name, version and release of a package, as rpm compares them.
    Package,
    /// GRUB 2.14: file names as GNU's `sort -V` compares them.
    FileName,
}

/// The entries as GRUB's `blscfg` sorts them, the newest first.
pub fn sorted_by_grub(entries: &[EntryFile], order: Order) -> Vec<&EntryFile> {
    let mut sorted: Vec<&EntryFile> = entries.iter().collect();
    sorted.sort_by(|a, b| match order {
        Order::Package => compare_packages(&b.id, &a.id),
        Order::FileName => compare_file_names(&b.id, &a.id),
    });
    sorted
}

/// Compares `name-version-release`; a text without dashes is only a name.
fn compare_packages(a: &str, b: &str) -> Ordering {
    let parts = |id: &str| {
        let mut parts: Vec<String> = format!("{id}.conf").rsplitn(3, '-').map(str::to_owned).collect();
        parts.reverse();
        parts.resize(3, String::new());
        parts
    };
    let (a, b) = (parts(a), parts(b));
    a.iter()
        .zip(&b)
        .map(|(a, b)| compare_versions(a, b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Compares file names without their extensions: runs of digits as numbers; between them, letters sort below other
/// characters, and `~` below the end.
fn compare_file_names(a: &str, b: &str) -> Ordering {
    let hidden = |name: &str| !name.starts_with('.');
    let stem = |name: &str| {
        let mut stem = name.to_owned();
        while let Some((rest, ending)) = stem.rsplit_once('.')
            && ending.starts_with(|c: char| c.is_ascii_alphabetic() || c == '~')
            && ending.chars().all(|c| c.is_ascii_alphanumeric() || c == '~')
            && !rest.is_empty()
        {
            stem = rest.to_owned();
        }
        stem
    };
    let weight = |letter: Option<u8>| match letter {
        Some(b'~') => -2,
        None => -1,
        Some(letter) if letter.is_ascii_digit() => 0,
        Some(letter) if letter.is_ascii_alphabetic() => i32::from(letter),
        Some(letter) => i32::from(letter) + 256,
    };
    let runs = |a: &str, b: &str| {
        let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
        while !a.is_empty() || !b.is_empty() {
            let is_sign = |text: &[u8]| text.first().is_some_and(|c| !c.is_ascii_digit());
            while is_sign(a) || is_sign(b) {
                let order = weight(a.first().copied()).cmp(&weight(b.first().copied()));
                if order.is_ne() {
                    return order;
                }
                (a, b) = (a.get(1..).unwrap_or_default(), b.get(1..).unwrap_or_default());
            }
            let number = |text: &mut &[u8]| {
                let end = text.iter().position(|c| !c.is_ascii_digit()).unwrap_or(text.len());
                let (digits, rest) = text.split_at_checked(end).unwrap_or_default();
                *text = rest;
                let start = digits.iter().position(|c| *c != b'0').unwrap_or(digits.len());
                let digits = digits.get(start..).unwrap_or_default().to_vec();
                (digits.len(), digits)
            };
            let order = number(&mut a).cmp(&number(&mut b));
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    };
    hidden(a).cmp(&hidden(b)).then_with(|| runs(&stem(a), &stem(b))).then_with(|| runs(a, b))
}

/// The entry that systemd-boot boots: the first name of `wanted` that an entry has (a pattern with `*` is allowed),
/// else the one that sorts first: entries with a `sort-key` before those without, then newer versions.
pub fn of_systemd_boot<'a>(entries: &'a [EntryFile], wanted: &[String]) -> Option<&'a EntryFile> {
    let mut sorted: Vec<&EntryFile> = entries.iter().collect();
    sorted.sort_by(|a, b| {
        let (x, y) = (a.first("sort-key"), b.first("sort-key"));
        let newer = |key: &str| compare_versions(b.first(key), a.first(key));
        let by_key = || x.cmp(y).then_with(|| a.first("machine-id").cmp(b.first("machine-id")));
        match (x.is_empty(), y.is_empty()) {
            (false, true) => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, false) => by_key().then_with(|| newer("version")),
            (true, true) => Ordering::Equal,
        }
        .then_with(|| compare_versions(b.plain_id(), a.plain_id()))
    });
    let named = |name: &String| {
        let pattern = name.to_lowercase();
        let pattern = pattern.strip_suffix(".conf").unwrap_or(&pattern);
        sorted.iter().find(|entry| {
            [entry.id.as_str(), entry.plain_id()]
                .iter()
                .any(|id| lowlat_host::snapshot::component_matches(pattern, &id.to_lowercase()))
        })
    };
    wanted.iter().find_map(named).or(sorted.first()).copied()
}

/// The entry that an ostree host boots: the one of the highest `version`, which counts deployments.
pub fn of_ostree(entries: &[EntryFile]) -> Option<&EntryFile> {
    entries.iter().max_by(|a, b| compare_versions(a.first("version"), b.first("version")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: &str, text: &str) -> EntryFile {
        EntryFile { id: id.into(), text: text.into() }
    }

    #[test]
    fn versions_compare_as_people_read_them() {
        for (lower, higher) in [
            ("4.18.0-240.el8", "4.18.0-240.22.1.el8_3"),
            ("6.9.1", "6.10"),
            ("m-0-rescue-m", "m-4.18.0"),
            ("1.0~rc1", "1.0"),
            ("a", "1"),
            ("1", "1a"),
            ("08", "9"),
        ] {
            assert_eq!(compare_versions(lower, higher), Ordering::Less, "{lower} {higher}");
            assert_eq!(compare_versions(higher, lower), Ordering::Greater, "{lower} {higher}");
            assert_eq!(compare_versions(lower, lower), Ordering::Equal);
        }
    }

    #[test]
    fn builds_of_grub_sort_patched_kernels_differently() {
        let ids = [
            "m-0-rescue",
            "m-5.14.0-70.el9",
            "m-5.14.0-427.el9.x86_64",
            "m-5.14.0-427.13.1.el9_4.x86_64",
            "m-6.0~rc1",
            "m-6.0",
        ];
        let entries = ids.map(|id| file(id, ""));
        let ids = |order| sorted_by_grub(&entries, order).iter().map(|e| e.id.clone()).collect::<Vec<_>>();
        let by_package = [
            "m-6.0",
            "m-6.0~rc1",
            "m-5.14.0-427.13.1.el9_4.x86_64",
            "m-5.14.0-427.el9.x86_64",
            "m-5.14.0-70.el9",
            "m-0-rescue",
        ];
        assert_eq!(ids(Order::Package), by_package);
        let by_name = [
            "m-6.0",
            "m-6.0~rc1",
            "m-5.14.0-427.el9.x86_64",
            "m-5.14.0-427.13.1.el9_4.x86_64",
            "m-5.14.0-70.el9",
            "m-0-rescue",
        ];
        assert_eq!(ids(Order::FileName), by_name, "as GRUB 2.14 shows them");
    }

    #[test]
    fn systemd_boot_takes_what_is_named_or_sorts_first() {
        let entries = [
            file("arch", ""),
            file("m-6.1+3", "sort-key debian\nversion 6.1\n"),
            file("m-6.12", "sort-key debian\nversion 6.12\n"),
        ];
        let id = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|w| (*w).to_owned()).collect();
            of_systemd_boot(&entries, &wanted).map(|e| e.id.as_str())
        };
        assert_eq!(id(&[]), Some("m-6.12"));
        assert_eq!(id(&["ARCH.conf"]), Some("arch"));
        assert_eq!(id(&["gone.conf", "m-6.1*"]), Some("m-6.12"), "the first in order that matches");
        assert_eq!(id(&["m-6.1"]), Some("m-6.1+3"));
    }

    #[test]
    fn ostree_takes_the_newest_deployment() {
        let entries = [file("ostree-1", "version 1\n"), file("ostree-2", "version 2\n")];
        assert_eq!(of_ostree(&entries).unwrap().id, "ostree-2");
    }

    proptest::proptest! {
        #[test]
        fn comparing_is_an_order(a in "[0-9a-b.~-]{0,12}", b in "[0-9a-b.~-]{0,12}") {
            proptest::prop_assert_eq!(compare_versions(&a, &b), compare_versions(&b, &a).reverse());
        }
    }
}
