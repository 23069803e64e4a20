//! grubenv, GRUB's block of variables: a file of 1,024 bytes that GRUB itself can write to without a file system.
//!
//! ```text
//! # GRUB Environment Block\n
//! saved_entry=0123...-4.18.0-553.el8.x86_64\n
//! kernelopts=root=/dev/mapper/rl-root ro crashkernel=auto \n
//! ############################################################...      no line end behind them
//! ```
//!
//! In a value, a backslash precedes each backslash and each line end. Lines that begin with `#` are comments.

use thiserror::Error;

/// Exact size of every block.
pub const BYTES: usize = 1024;
const HEADER: &[u8] = b"# GRUB Environment Block\n";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrubEnv {
    /// Everything before the padding, header included.
    content: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GrubEnvFault {
    /// The size is not that of a block.
    #[error("found {0} bytes, expected {BYTES}")]
    Size(usize),
    #[error("found {0:?} at its start, expected \"# GRUB Environment Block\"")]
    Header(String),
    /// The last line before the padding has no end.
    #[error("found {0:?} before the padding, expected a line end")]
    Line(String),
    /// The new content does not fit.
    #[error("its variables need {0} bytes, and it has {BYTES}")]
    TooLarge(usize),
}

impl GrubEnv {
    pub fn parse(bytes: &[u8]) -> Result<Self, GrubEnvFault> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(60).collect::<String>();
        if !bytes.starts_with(HEADER) {
            return Err(GrubEnvFault::Header(text(bytes)));
        }
        if bytes.len() != BYTES {
            return Err(GrubEnvFault::Size(bytes.len()));
        }
        let end = bytes.iter().rposition(|byte| *byte != b'#').map_or(0, |at| at + 1);
        let content = bytes.get(..end).unwrap_or_default().to_vec();
        if !content.ends_with(b"\n") {
            let line = content.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            return Err(GrubEnvFault::Line(text(line)));
        }
        Ok(Self { content })
    }

    /// The lines, as the positions of their starts and ends. A backslash before a line end makes it a part of the
    /// value.
    fn lines(&self) -> Vec<(usize, usize)> {
        let mut lines = Vec::new();
        let (mut start, mut is_escaped) = (0, false);
        for (at, byte) in self.content.iter().enumerate() {
            match byte {
                b'\n' if !is_escaped => {
                    lines.push((start, at));
                    start = at + 1;
                }
                b'\\' => is_escaped = !is_escaped,
                _ => is_escaped = false,
            }
        }
        lines
    }

    /// Every variable, in the order of the block. Invalid UTF-8 is replaced.
    pub fn variables(&self) -> Vec<(String, String)> {
        let variable = |(start, end): (usize, usize)| {
            let line = self.content.get(start..end).unwrap_or_default();
            if line.starts_with(b"#") {
                return None;
            }
            let line = String::from_utf8_lossy(line).into_owned();
            line.split_once('=').map(|(name, value)| (name.to_owned(), unescaped(value)))
        };
        self.lines().into_iter().filter_map(variable).collect()
    }

    /// The value of a variable; none if it is not set.
    pub fn get(&self, name: &str) -> Option<String> {
        self.variables().into_iter().rev().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The block as bytes with the variable set; one that was set keeps its place.
    pub fn with(&self, name: &str, value: &str) -> Result<Vec<u8>, GrubEnvFault> {
        let start = format!("{name}=");
        let place = self.lines().into_iter().rev().find(|line| self.begins_with(*line, &start));
        let (at, behind) = place.unwrap_or((self.content.len(), self.content.len()));
        let mut bytes = self.content.get(..at).unwrap_or_default().to_vec();
        bytes.extend(start.as_bytes());
        bytes.extend(escaped(value).as_bytes());
        if place.is_none() {
            bytes.push(b'\n');
        }
        bytes.extend(self.content.get(behind..).unwrap_or_default());
        if bytes.len() > BYTES {
            return Err(GrubEnvFault::TooLarge(bytes.len()));
        }
        bytes.resize(BYTES, b'#');
        Ok(bytes)
    }

    /// The block as bytes without the variable; all of its lines are removed.
    pub fn without(&self, name: &str) -> Vec<u8> {
        let start = format!("{name}=");
        let others = self.lines().into_iter().filter(|line| !self.begins_with(*line, &start));
        let mut bytes: Vec<u8> =
            others.flat_map(|(at, end)| self.content.get(at..=end).unwrap_or_default()).copied().collect();
        bytes.resize(BYTES, b'#');
        bytes
    }

    fn begins_with(&self, (at, end): (usize, usize), start: &str) -> bool {
        self.content.get(at..end).is_some_and(|line| line.starts_with(start.as_bytes()))
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\\n")
}

fn unescaped(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' { plain.extend(letters.next()) } else { plain.push(letter) }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(lines: &str) -> Vec<u8> {
        let mut bytes = [HEADER, lines.as_bytes()].concat();
        bytes.resize(BYTES, b'#');
        bytes
    }

    #[test]
    fn a_variable_is_set_in_its_place_and_the_rest_stays() {
        let before = "# WARNING: Do not edit this file by tools other than grub-editenv!!!\nsaved_entry=x\n";
        let bytes = block(&format!("{before}kernelopts=root=/dev/sda ro \nboot_success=0\n"));
        let env = GrubEnv::parse(&bytes).unwrap();
        assert_eq!(env.get("kernelopts").as_deref(), Some("root=/dev/sda ro "));
        assert_eq!(env.get("tuned_params"), None);
        let new = env.with("kernelopts", "root=/dev/sda ro nohz_full=1 ").unwrap();
        assert_eq!(
            new,
            block(&format!("{before}kernelopts=root=/dev/sda ro nohz_full=1 \nboot_success=0\n"))
        );
        let other = GrubEnv::parse(&new).unwrap().with("next_entry", "").unwrap();
        assert!(String::from_utf8(other).unwrap().contains("boot_success=0\nnext_entry=\n###"));
    }

    #[test]
    fn a_variable_is_taken_out_with_all_of_its_lines() {
        let env = GrubEnv::parse(&block("# b=1\na=1\nb=2\\\nb=3\nbb=4\nb=5\n")).unwrap();
        assert_eq!(env.without("b"), block("# b=1\na=1\nbb=4\n"));
        assert_eq!(env.without("c"), block("# b=1\na=1\nb=2\\\nb=3\nbb=4\nb=5\n"));
    }

    #[test]
    fn what_is_no_block_is_told_with_sizes() {
        let told = |bytes: &[u8]| GrubEnv::parse(bytes).unwrap_err().to_string();
        assert_eq!(told(b"# GRUB Environment Block\n####"), "found 29 bytes, expected 1024");
        assert_eq!(told(b""), "found \"\" at its start, expected \"# GRUB Environment Block\"");
        assert!(told(&block("kernelopts=x")).contains("kernelopts=x"));
        let env = GrubEnv::parse(&block("a=b\n")).unwrap();
        let full = env.with("x", &"y".repeat(1024)).unwrap_err();
        assert_eq!(full.to_string(), "its variables need 1056 bytes, and it has 1024");
        assert_eq!(env.with("x", &"y".repeat(1024 - 32)).unwrap().len(), BYTES, "to the last byte");
    }

    proptest! {
        #[test]
        fn what_is_set_is_read_again_and_nothing_else_moves(
            name in "[a-z_]{1,10}", value in "[\\PC\n\\\\#=\r]{0,60}", others in "([b-d]=[^\n\\\\\0]{0,20}\n){0,4}",
        ) {
            let env = GrubEnv::parse(&block(&others)).unwrap();
            let new = GrubEnv::parse(&env.with(&name, &value).unwrap()).unwrap();
            prop_assert_eq!(new.get(&name), Some(value));
            let rest = |env: &GrubEnv| env.variables().into_iter().filter(|(n, _)| *n != name).collect::<Vec<_>>();
            prop_assert_eq!(rest(&new), rest(&env));
            let off = GrubEnv::parse(&new.without(&name)).unwrap();
            prop_assert_eq!((off.get(&name), rest(&off)), (None, rest(&env)));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 999)) {
            let bytes = [HEADER, &bytes].concat();
            if let Ok(env) = GrubEnv::parse(&bytes) {
                let _ = (env.variables(), env.with("a", "b"), env.without("a"));
            }
        }
    }
}
