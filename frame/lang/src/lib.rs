//! Pages in other languages than English.
//!
//! A page is built in English and translated where it leaves lowlat. Most of its texts are not written by the page: the
//! judgements and causes in it come from a result document, which another lowlat wrote in English, perhaps years ago.
//! Calls at each text could not reach those.
//!
//! The catalogues are PO files. Their keys are texts as the page shows them, with holes: `{n}` for a figure or a list
//! of CPUs, `{w}` for part of a list, `{v}` for a name that is never translated, `{}` for anything, such as another
//! text. Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod dictionary;
mod html;
mod pattern;

pub use dictionary::Dictionary;
pub use html::{misses, translated};

use flate2::read::GzDecoder;
use std::io::Read as _;

/// The Chinese catalogue, in files by the part of lowlat that shows the texts, compressed by the build script.
const CHINESE: &[&[u8]] = &[
    include_bytes!(concat!(env!("OUT_DIR"), "/facts.po.gz")),
    include_bytes!(concat!(env!("OUT_DIR"), "/firmware.po.gz")),
    include_bytes!(concat!(env!("OUT_DIR"), "/pages.po.gz")),
    include_bytes!(concat!(env!("OUT_DIR"), "/settings-boot-sysfs.po.gz")),
    include_bytes!(concat!(env!("OUT_DIR"), "/settings-rest.po.gz")),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English, in which pages are written.
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Language {
    pub const ALL: &[Self] = &[Self::English, Self::Chinese];

    /// Returns its code, as in `--lang`.
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// Returns an English page in this language.
    pub fn page(self, page: String) -> String {
        match self {
            Self::English => page,
            Self::Chinese => translated(&page, "zh-CN", &chinese()),
        }
    }
}

pub fn chinese() -> Dictionary {
    let files = catalogues();
    Dictionary::of(&files.iter().map(String::as_str).collect::<Vec<_>>())
}

fn catalogues() -> Vec<String> {
    let whole = |packed: &&[u8]| {
        let mut text = String::new();
        // Only a damaged binary fails here; the page is then in English.
        let _ = GzDecoder::new(*packed).read_to_string(&mut text);
        text
    };
    CHINESE.iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::{Dictionary, catalogues, chinese, translated};
    use polib::po_file::parse_from_reader;
    use std::collections::BTreeSet;

    fn page(html: &str) -> String {
        let entries = r#"msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

msgid "More on <b>{}</b> here."
msgstr "这里有更多<b>{}</b>。"

msgid "isolated CPUs"
msgstr "隔离 CPU"

msgid "{n} hosts differ"
msgstr "{n} 台主机不同"

msgid "Run {} again."
msgstr "再运行 {}。"

msgid "Wanted"
msgstr "期望值"
"#;
        translated(html, "zh-CN", &Dictionary::of(&[entries]))
    }

    #[test]
    fn texts_attributes_and_the_language_change_and_nothing_else() {
        assert_eq!(page("<html lang=\"en\"><p>Wanted</p>"), "<html lang=\"zh-CN\"><p>期望值</p>");
        assert_eq!(
            page("<td data-label=\"Wanted\" class=\"Wanted\">wanted: <code>Wanted</code></td>"),
            "<td data-label=\"期望值\" class=\"Wanted\">期望值：<code>Wanted</code></td>"
        );
        assert_eq!(
            page("<p>More on <b class=\"x\">isolated CPUs</b> here.</p>"),
            "<p>这里有更多<b class=\"x\">隔离 CPU</b>。</p>"
        );
        assert_eq!(page("<p>Run <code>a &lt; b</code> again.</p>"), "<p>再运行 <code>a &lt; b</code>。</p>");
        for kept in [
            "<script>if (a < b) { \"Wanted\"; }</script>",
            "<style>p > a { }</style>",
            "<ul translate=\"no\"><li>Wanted</li></ul>",
            "<p>Nobody wants &amp; this &lt;b&gt;</p>",
        ] {
            assert_eq!(page(kept), kept);
        }
    }

    #[test]
    fn sentences_and_parts_are_tried_alone() {
        assert_eq!(page("<p>3 hosts differ; isolated CPUs</p>"), "<p>3 台主机不同；隔离 CPU</p>");
        assert_eq!(
            page("<p>1,024 hosts differ. Unknown words.</p>"),
            "<p>1,024 台主机不同。Unknown words.</p>"
        );
        assert_eq!(page("<p>Wanted: x</p>"), "<p>期望值：x</p>");
        assert_eq!(
            page("<span>Wanted</span> <a href=\"#\">other</a>"),
            "<span>期望值</span> <a href=\"#\">other</a>"
        );
    }

    #[test]
    fn characters_of_a_text_do_not_repeat_its_markup() {
        let hostile = "<p>\u{f0000}More on <b id=\"x\">isolated\u{f0001} CPUs</b> here.\u{10ffff}</p>";
        let translated = page(hostile);
        assert_eq!(translated.matches("<b id=\"x\">").count(), 1, "{translated}");
        assert_eq!(translated.matches("</b>").count(), 1, "{translated}");
        assert_eq!(page("<p>\u{f0000} <b>Wanted</b></p>"), "<p>\u{fffd} <b>期望值</b></p>");
        assert_eq!(page("<p title=\"\u{f0000} &amp;\">Wanted</p>"), "<p title=\"\u{fffd} &amp;\">期望值</p>");
    }

    /// Interrupts and threads may be named as words that the catalogue has.
    #[test]
    fn names_of_interrupts_and_threads_stay_as_the_kernel_prints_them() {
        let dictionary = chinese();
        let mut names: BTreeSet<String> =
            ["kworker/1:2-mm_percpu_wq", "migration/3", "IR-PCI-MSI 9-edge"].map(str::to_owned).into();
        for file in catalogues() {
            let catalog = parse_from_reader(file.as_bytes()).expect("a PO file");
            names.extend(catalog.messages().map(|message| message.msgid().to_owned()));
        }
        names.retain(|name| name.len() < 16 && !name.contains(['{', '<', '.', ' ', '(']) && !name.is_empty());
        assert!(names.contains("timer") && names.len() > 100, "{names:?}");
        for name in names {
            for (text, wanted) in [
                (format!("irq 0 {name}"), format!("IRQ 0 {name}")),
                (format!("irq {name}"), format!("IRQ {name}")),
                (format!("thread {name} (pid 7, nice 0)"), format!("线程 {name}（pid 7，nice 0）")),
                (format!("thread {name} (pid 7, real-time 50)"), format!("线程 {name}（pid 7，实时 50）")),
                (format!("thread {name}: 3 ms"), format!("线程 {name}：3 ms")),
                (format!("softirq {name}"), format!("软中断 {name}")),
            ] {
                // Texts such as "irq work" have entries.
                let translated = translated(&format!("<p>{text}</p>"), "zh-CN", &dictionary);
                let is_text = dictionary.texts.contains_key(&text)
                    || dictionary.texts.contains_key(text.trim_end_matches(": 3 ms"));
                assert!(is_text || translated == format!("<p>{wanted}</p>"), "{text}: {translated}");
            }
        }
    }

    #[test]
    fn texts_in_holes_are_translated_to_a_limited_depth() {
        assert_eq!(page("<p>Run Run Wanted again. again.</p>"), "<p>再运行再运行期望值。。</p>");
        let deep = format!("{}Wanted{}", "Run ".repeat(1_600), " again.".repeat(1_600));
        let translated = page(&format!("<p>{deep}</p>"));
        assert!(
            translated.starts_with("<p>再运行再运行") && translated.contains("Run Run Wanted again. again.")
        );
    }

    #[test]
    fn texts_of_20_kb_that_repeat_a_pattern_end() {
        let dictionary = chinese();
        for (part, end) in
            [("7 for 1 s, interruptions of ", ""), (" is loaded", "x"), ("x: ", "up"), ("tcp to ", "")]
        {
            let text = part.repeat(20_000 / part.len()) + end;
            assert!(translated(&format!("<p>{text}</p>"), "zh-CN", &dictionary).ends_with("</p>"));
        }
    }
}
