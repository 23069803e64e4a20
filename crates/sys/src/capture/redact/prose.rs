//! Takes out of configuration what readers never look at and people may have written names into: comments, and
//! everything of a unit file but the headings of its sections.

/// Where configuration for people stands.
const CONFIGURATION: [&str; 4] = ["/etc/", "/usr/lib/", "/usr/local/lib/", "/lib/"];
/// Part of every directory of unit files.
const UNITS: &str = "/systemd/system/";

pub(super) fn is_configuration(path: &str) -> bool {
    CONFIGURATION.iter().any(|directory| path.starts_with(directory))
}

/// Blanks comment lines, so that the numbers of the others stay; of unit files keeps the headings alone. Files that are
/// no text are left as they are.
pub(super) fn cut(path: &str, bytes: &mut Vec<u8>) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let kept = if path.contains(UNITS) { headings(text) } else { without_comments(text) };
    *bytes = kept.into_bytes();
}

fn headings(text: &str) -> String {
    let mut kept = String::new();
    for line in text.lines().map(str::trim).filter(|line| line.starts_with('[') && line.ends_with(']')) {
        kept.push_str(line);
        kept.push('\n');
    }
    // An empty unit file is a mask; one without sections is not.
    if kept.is_empty() && !text.is_empty() { "\n".into() } else { kept }
}

fn without_comments(text: &str) -> String {
    let is_comment = |line: &str| line.trim_start().starts_with(['#', ';']);
    let kept: Vec<&str> = text.split('\n').map(|line| if is_comment(line) { "" } else { line }).collect();
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_text(path: &str, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        cut(path, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn settings_keep_their_lines() {
        assert_eq!(
            cut_text("/etc/sysctl.conf", "# Ask Jo\n; or Al\nvm.x = 1 # why\n"),
            "\n\nvm.x = 1 # why\n"
        );
        assert_eq!(cut_text("/etc/os-release", "A=1\n#"), "A=1\n");
        assert!(is_configuration("/etc/x") && !is_configuration("/proc/cmdline"));
    }

    #[test]
    fn units_keep_their_headings_and_masks_stay_masks() {
        let path = "/usr/lib/systemd/system/a.service";
        assert_eq!(
            cut_text(path, "# us\n[Unit]\nDescription=x\n [Install] \nAlias=y\n"),
            "[Unit]\n[Install]\n"
        );
        assert_eq!(cut_text(path, ""), "");
        assert_eq!(cut_text(path, "nothing"), "\n");
    }
}
