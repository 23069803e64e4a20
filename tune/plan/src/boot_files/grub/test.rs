//! GRUB's `test` and `[`, and its numbers. An answer that depends on something unknown is `None`.

use super::Found;

/// Brackets nested deeper than this are not evaluated.
const DEPTH_MAX: usize = 16;

/// The number that a text starts with, and what follows it: decimal, octal after `0`, hexadecimal after `0x`.
pub(super) fn number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let is_octal = |rest: &str| rest.starts_with(|c: char| c.is_digit(8));
    let (digits, radix) = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(rest), _) => (rest, 16),
        (None, Some(rest)) if is_octal(rest) => (rest, 8),
        _ => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end)?;
    Some((u64::from_str_radix(digits, radix).ok()?, rest))
}

/// A number that can be negative; 0 if the text is none.
pub(super) fn signed(text: &str) -> i64 {
    let trimmed = text.trim_start();
    let (is_negative, digits) = trimmed.strip_prefix('-').map_or((false, trimmed), |rest| (true, rest));
    let size = number(digits).map_or(0, |(value, _)| i64::try_from(value).unwrap_or(i64::MAX));
    if is_negative { size.saturating_neg() } else { size }
}

/// An expression while it is evaluated.
pub(super) struct Test<'a> {
    pub(super) arguments: &'a [Option<String>],
    pub(super) look: &'a mut dyn FnMut(&str) -> Found,
    pub(super) depth: usize,
}

impl Test<'_> {
    /// Evaluates the expression. `-o` binds weaker than the implicit "and" between two tests in a row.
    pub(super) fn value(&mut self) -> Option<bool> {
        let (mut any, mut all, mut is_inverted) = (Some(false), Some(true), false);
        while let Some((first, rest)) = self.arguments.split_first() {
            let test = self.ternary().or_else(|| self.unary());
            if let Some((value, length)) = test {
                self.skip(length);
                all = and(all, value.map(|value| value != is_inverted));
                is_inverted = false;
                continue;
            }
            self.arguments = rest;
            let value = match first.as_deref()? {
                ")" => return or(any, all),
                "!" => {
                    is_inverted = !is_inverted;
                    continue;
                }
                "-a" => continue,
                "-o" => {
                    any = or(any, all);
                    all = Some(true);
                    continue;
                }
                "(" if self.depth >= DEPTH_MAX => return None,
                "(" => {
                    self.depth += 1;
                    let value = self.value();
                    self.depth = self.depth.saturating_sub(1);
                    value
                }
                word => Some(!word.is_empty()),
            };
            all = and(all, value.map(|value| value != is_inverted));
            is_inverted = false;
        }
        or(any, all)
    }

    fn skip(&mut self, length: usize) {
        self.arguments = self.arguments.get(length..).unwrap_or_default();
    }

    /// A test with its operator in the middle, and its length in words.
    fn ternary(&self) -> Option<(Option<bool>, usize)> {
        let [left, operator, right, ..] = self.arguments else { return None };
        // The word in the operator's place decides how the rest is read.
        let Some(operator) = operator else { return Some((None, self.arguments.len())) };
        let known = left.as_deref().zip(right.as_deref());
        let texts = |is: fn(&str, &str) -> bool| known.map(|(left, right)| is(left, right));
        let numbers = |is: fn(&i64, &i64) -> bool| known.map(|(l, r)| is(&signed(l), &signed(r)));
        let value = match operator.as_str() {
            "=" | "==" => texts(|l, r| l == r),
            "!=" => texts(|l, r| l != r),
            "<" => texts(|l, r| l < r),
            "<=" => texts(|l, r| l <= r),
            ">" => texts(|l, r| l > r),
            ">=" => texts(|l, r| l >= r),
            "-eq" => numbers(i64::eq),
            "-ne" => numbers(i64::ne),
            "-lt" => numbers(i64::lt),
            "-le" => numbers(i64::le),
            "-gt" => numbers(i64::gt),
            "-ge" => numbers(i64::ge),
            "-pgt" | "-plt" => None,
            other if other.starts_with("-nt") || other.starts_with("-ot") => None,
            _ => return None,
        };
        Some((value, 3))
    }

    /// A test with its operator in front, and its length in words.
    fn unary(&mut self) -> Option<(Option<bool>, usize)> {
        let [operator, operand, ..] = self.arguments else { return None };
        let Some(operator) = operator else { return Some((None, self.arguments.len())) };
        let mut found = |is: fn(&Found) -> bool| match operand.as_deref().map(&mut *self.look) {
            None | Some(Found::NotKnown) => None,
            Some(found) => Some(is(&found)),
        };
        let value = match operator.as_str() {
            "-n" => operand.as_ref().map(|text| !text.is_empty()),
            "-z" => operand.as_ref().map(String::is_empty),
            "-e" => found(|found| matches!(found, Found::File(_) | Found::Directory)),
            "-d" => found(|found| matches!(found, Found::Directory)),
            "-f" => found(|found| matches!(found, Found::File(_))),
            "-s" => found(|found| matches!(found, Found::File(bytes) if !bytes.is_empty())),
            _ => return None,
        };
        Some((value, 2))
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    if a == Some(false) || b == Some(false) { Some(false) } else { Some(a? && b?) }
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    if a == Some(true) || b == Some(true) { Some(true) } else { Some(a? || b?) }
}
