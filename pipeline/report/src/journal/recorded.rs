//! Summary of a recorder, as text.

use lowlat_text::text::{BOLD, GREEN, RED, YELLOW, add_painted, add_wrapped, paint, usable};
use lowlat_text::units::{clean, duration, plural, size};
use serde::Serialize;

/// Summary of a recorder's run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct JournalRecorded {
    pub folder: String,
    /// Number of streams that it followed.
    pub streams: usize,
    /// Number of records that it wrote.
    pub records: u64,
    /// Records that the resumed recording already contained.
    pub skipped: u64,
    /// Gaps written to the recording.
    pub gaps: u64,
    /// Number of records in these gaps.
    pub lost: u64,
    /// Records in these gaps that were overwritten before the recorder started.
    pub missed: u64,
    /// Number of data files written.
    pub files: u64,
    pub bytes: u64,
    /// Duration of the recording, ns.
    pub took_ns: u64,
    /// Number of stalls: the disk lagged and the buffer was full.
    pub disk_waits: u64,
    /// Total duration of the stalls, ns.
    pub disk_waited_ns: u64,
    /// Reason why it ended, such as "the pipeline ended".
    pub ended: &'static str,
}

/// Formats what was recorded, and what is missing and why.
pub fn journal_recorded_text(recorded: &JournalRecorded, width: usize) -> String {
    let width = usable(width);
    let folder = clean(&recorded.folder);
    let mut out = paint(BOLD, &folder);
    out.push('\n');
    let records_were =
        |number: u64| format!("{} {}", plural(number, "record"), if number == 1 { "was" } else { "were" });
    let text = format!(
        "{} of {} in {}: {} in {}",
        plural(recorded.records, "record"),
        plural(recorded.streams, "stream"),
        duration(recorded.took_ns),
        size(recorded.bytes),
        plural(recorded.files, "file"),
    );
    add_wrapped(&mut out, &text, 0, width);
    add_wrapped(&mut out, &format!("It stopped because {}.", recorded.ended), 0, width);
    if recorded.streams == 0 {
        add_wrapped(&mut out, "No stream was found: check --stream and the running processes.", 0, width);
    }
    let others = [
        (recorded.skipped, "already in the recording."),
        (recorded.missed, "overwritten before the recorder started; the recording has a gap there."),
    ];
    for (number, what) in others.into_iter().filter(|(number, _)| *number > 0) {
        add_wrapped(&mut out, &format!("{} {what}", records_were(number)), 0, width);
    }
    let lost = recorded.lost - recorded.missed.min(recorded.lost);
    if lost > 0 {
        let text = format!("{} lost; `lowlat journal ls {folder}` lists them.", records_were(lost));
        add_painted(&mut out, RED, &text, 0, width);
    } else {
        out.push_str(&paint(GREEN, "Nothing was lost."));
        out.push('\n');
    }
    if recorded.disk_waits > 0 {
        let text = format!(
            "The disk stalled the recorder for {}: the buffer was full. Raise --buffer-mib, or use a faster disk.",
            duration(recorded.disk_waited_ns)
        );
        add_painted(&mut out, YELLOW, &text, 0, width);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(recorded: &JournalRecorded) -> String {
        let text = anstream::adapter::strip_str(&journal_recorded_text(recorded, 80)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text
    }

    #[test]
    fn lost_records_are_distinct_from_those_overwritten_before_the_start() {
        let whole = JournalRecorded {
            folder: "/recordings/monday".to_owned(),
            streams: 82,
            records: 1_234_567,
            files: 1,
            bytes: 150 << 20,
            took_ns: 61_000_000_000,
            ended: "the pipeline ended",
            ..JournalRecorded::default()
        };
        let text = plain(&whole);
        assert!(
            text.contains("1,234,567 records of 82 streams") && text.contains("Nothing was lost."),
            "{text}"
        );
        let missed = JournalRecorded { gaps: 1, lost: 7, missed: 7, skipped: 1, ..whole.clone() };
        let text = plain(&missed);
        assert!(text.contains("7 records were overwritten before"), "{text}");
        assert!(text.contains("Nothing was lost.") && text.contains("1 record was already in"), "{text}");
        let lost = JournalRecorded { lost: 8, disk_waits: 3, disk_waited_ns: 1_500_000_000, ..missed };
        let text = plain(&lost);
        assert!(
            text.contains("1 record was lost") && text.contains("stalled the recorder for 1.50 s"),
            "{text}"
        );
        assert!(!text.contains("Nothing was lost."), "{text}");
        assert!(plain(&JournalRecorded::default()).contains("No stream was found"));
    }
}
