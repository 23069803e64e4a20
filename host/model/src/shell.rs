//! Words of a shell.

/// Returns a word as a POSIX shell reads it: quoted, unless it consists of harmless characters only.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn only_harmless_words_stay_unquoted() {
        for plain in ["1-7,9-15", "/etc/x.conf", "a=b", "user@host:50%+"] {
            assert_eq!(word(plain), plain);
        }
        for (text, quoted) in
            [("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'"), ("é", "'é'")]
        {
            assert_eq!(word(text), quoted);
        }
    }
}
