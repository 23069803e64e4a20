//! The format of sysfs files that offer several words and put the current one in brackets: `always [madvise]
//! never`.

use crate::Root;
use lowlat_host::Reading;

/// The bracketed word of the file, or its only word.
pub(super) fn chosen(root: &Root, path: &str) -> Reading<String> {
    root.read(path).parse(path, "words with the current one in brackets", |text| {
        let bracketed =
            text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word.trim());
        let only = || {
            Some(text)
                .filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)))
        };
        bracketed.or_else(only).filter(|word| !word.is_empty()).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    #[test]
    fn the_bracketed_or_only_word_is_taken() {
        let chosen_of = |text: &str| chosen(&TestTree::of(&[("/sys/words", text)]).root(), "/sys/words");
        assert_eq!(chosen_of("[none] mq-deadline\n").text(), "none");
        assert_eq!(chosen_of("mq-deadline kyber [bfq] none").text(), "bfq");
        assert_eq!(chosen_of("none\n").text(), "none");
        for junk in ["", "a b", "?", "]a[", "[]", "["] {
            assert!(matches!(chosen_of(junk), Reading::Unparsable(_)), "{junk}");
        }
    }
}
