//! The help's examples can be typed.

use crate::common;

#[test]
fn examples_use_options_that_exist() {
    let help = common::text(&common::lowlat(&["jitter", "--help"]).stdout);
    let (options, examples) = help.split_once("Examples:").expect("examples");
    let is_option = |word: &str| options.split([' ', ',', '\n']).any(|known| known == word);
    let lines = examples.lines().filter(|line| line.contains("lowlat jitter"));
    let mut count = 0;
    for word in lines.flat_map(str::split_whitespace).filter(|word| word.starts_with("--")) {
        assert!(is_option(word), "{word} is no option");
        count += 1;
    }
    assert!(count >= 6, "{count} options in the examples");
}
