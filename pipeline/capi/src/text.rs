//! Zero-terminated texts of bounded length.

use std::{ffi::c_char, fmt};

/// A text of less than `N` bytes, without allocation. Longer texts are truncated.
#[derive(Debug)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    pub const fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    pub fn clear(&mut self) {
        self.length = 0;
        self.end();
    }

    pub fn push(&mut self, text: &str) {
        let room = N.saturating_sub(self.length + 1);
        let fits = |at: &usize| text.is_char_boundary(*at);
        let take = (0..=room.min(text.len())).rev().find(fits).unwrap_or(0);
        let from = text.as_bytes().get(..take).unwrap_or_default();
        if let Some(to) = self.bytes.get_mut(self.length..self.length + take) {
            // A zero would terminate it early.
            to.iter_mut().zip(from).for_each(|(to, from)| *to = if *from == 0 { b'?' } else { *from });
            self.length += take;
        }
        self.end();
    }

    /// Sets the text, unless it is already equal.
    pub fn set(&mut self, text: &str) {
        if self.bytes.get(..self.length) != Some(text.as_bytes()) {
            self.clear();
            self.push(text);
        }
    }

    pub fn set_to(&mut self, text: &dyn fmt::Display) {
        self.clear();
        // Writing never fails.
        fmt::write(self, format_args!("{text}")).ok();
    }

    pub fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }

    fn end(&mut self) {
        if let Some(end) = self.bytes.get_mut(self.length) {
            *end = 0;
        }
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn read<const N: usize>(text: &Text<N>) -> &str {
        CStr::from_bytes_until_nul(&text.bytes).unwrap().to_str().unwrap()
    }

    #[test]
    fn texts_are_truncated_and_terminated() {
        let mut text = Text::<8>::new();
        assert_eq!(read(&text), "");
        text.set("orders");
        assert_eq!(read(&text), "orders");
        text.push("123");
        assert_eq!(read(&text), "orders1");
        text.push("more");
        assert_eq!(read(&text), "orders1");
        text.set("md");
        assert_eq!(read(&text), "md");
        text.set("ab\0c");
        assert_eq!(read(&text), "ab?c");
        // "ü" has two bytes, of which only one would fit.
        text.set("123456ü");
        assert_eq!(read(&text), "123456");
        text.set_to(&format_args!("{}-{}", 12, 3));
        assert_eq!(read(&text), "12-3");
    }
}
