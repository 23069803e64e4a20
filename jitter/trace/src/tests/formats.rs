use super::{LAYOUT, recorded_files, recorded_formats};
use crate::{EventFormat, PageLayout, Place, TRACEPOINTS, TraceFormats, check_entry_layout};
use std::collections::BTreeSet;

const MADE: &str = "name: made\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:__rel_loc char[] rel;\toffset:12;\tsize:4;\tsigned:0;\n\
    \tfield:const char *reason;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:char comm[16];\toffset:24;\tsize:16;\n\
    \tfield:unsigned long args[6];\toffset:40;\tsize:48;\tsigned:0;\n\n\
    print fmt: \"field:not one;\"\n";

#[test]
fn a_format_tells_its_fields() {
    let format = EventFormat::parse("made/made", MADE).unwrap();
    assert_eq!((format.name.as_str(), format.id, format.fields.len()), ("made", 7, 7));
    let shape = |name: &str| {
        let field = format.field(name).unwrap();
        (field.c_type.as_str(), field.offset, field.size, field.is_signed, field.place)
    };
    assert_eq!(shape("common_type"), ("unsigned short", 0, 2, false, Place::Here));
    assert_eq!(shape("common_pid"), ("int", 4, 4, true, Place::Here));
    assert_eq!(shape("name"), ("__data_loc char[]", 8, 4, false, Place::DataLoc));
    assert_eq!(shape("rel"), ("__rel_loc char[]", 12, 4, false, Place::RelLoc));
    assert_eq!(shape("reason"), ("const char *", 16, 8, false, Place::Here));
    assert_eq!(shape("comm"), ("char[16]", 24, 16, false, Place::Here), "old kernels do not have the sign");
    assert_eq!(shape("args"), ("unsigned long[6]", 40, 48, false, Place::Here));
    assert_eq!(format.field("nothing"), None);
}

/// Returns the content of a `__data_loc`.
fn location(length: u32, offset: u32) -> u32 {
    (length << 16) + offset
}

#[test]
fn fields_are_read_where_they_stand() {
    let format = EventFormat::parse("made/made", MADE).unwrap();
    let mut record = vec![0_u8; 96];
    record[4..8].copy_from_slice(&(-5_i32).to_ne_bytes());
    record[8..12].copy_from_slice(&location(4, 88).to_ne_bytes());
    record[12..16].copy_from_slice(&location(3, 73).to_ne_bytes());
    record[24..28].copy_from_slice(b"busy");
    record[88..92].copy_from_slice(b"eth\0");
    let field = |name: &str| format.field(name).unwrap();
    assert_eq!(field("common_pid").number(&record).map(u64::cast_signed), Some(-5));
    assert_eq!(field("name").text(&record), Some(&b"eth"[..]));
    assert_eq!(field("rel").bytes(&record), Some(&b"th\0"[..]), "counted from the field's end");
    assert_eq!(field("comm").text(&record), Some(&b"busy"[..]));
    assert_eq!(field("comm").number(&record), None, "sixteen bytes are no number");
    assert_eq!(field("args").bytes(&record[..60]), None, "the record ends before");
    record[10..12].copy_from_slice(&200_u16.to_ne_bytes());
    assert_eq!(field("name").bytes(&record), None, "the text lies outside");
}

#[test]
fn errors_tell_the_event_the_line_and_what_was_expected() {
    let said = |text: &str| EventFormat::parse("sched/made", text).unwrap_err().to_string();
    let with = |from: &str, to: &str| said(&MADE.replacen(from, to, 1));
    insta::assert_snapshot!([
        said(""),
        with("ID: 7", "ID: 70000"),
        with("name: made\n", ""),
        with("offset:0;", "offset:x;"),
        with("size:2;", ""),
        with("offset:4;", "offset:18446744073709551615;"),
        with("unsigned short common_type", "nothing"),
        with("\tsize:4;\tsigned:0;\n\tfield:__rel", "\tsize:8;\n\tfield:__rel"),
    ].join("\n"), @r#"
trace format of sched/made: found "", expected a line "name: <event>"
trace format of sched/made: found "ID: 70000", expected an ID from 0 to 65535
trace format of sched/made: found "ID: 7", expected a line "name: <event>"
trace format of sched/made: found "field:unsigned short common_type;	offset:x;	size:2;	signed:0;", expected "offset:" with a number
trace format of sched/made: found "field:unsigned short common_type;	offset:0;		signed:0;", expected "size:" with a number
trace format of sched/made: found "field:int common_pid;	offset:18446744073709551615;	size:4;	signed:1;", expected a field within the first MiB of the record
trace format of sched/made: found "field:nothing;	offset:0;	size:2;	signed:0;", expected a C type and a name
trace format of sched/made: found "field:__data_loc char[] name;	offset:8;	size:8;", expected a __data_loc or __rel_loc of 4 bytes
"#);
    assert!(
        EventFormat::parse(
            "a/b",
            &(MADE.replace("print", "") + &"field:int a;offset:0;size:4;\n".repeat(300))
        )
        .is_err()
    );
}

#[test]
fn the_heads_of_this_kernel_are_known() {
    let files = recorded_files();
    assert_eq!(PageLayout::parse(&files["header_page"]), Ok(LAYOUT));
    assert_eq!(check_entry_layout(&files["header_event"]), Ok(()));
    // A 32-bit kernel, and one before 4.17.
    let narrow = files["header_page"].replacen("offset:8;\tsize:8;", "offset:8;\tsize:4;", 1);
    assert_eq!(PageLayout::parse(&narrow).map(|layout| layout.commit_size), Ok(4));
    assert_eq!(check_entry_layout(&files["header_event"].replace("time_stamp : type == 31\n", "")), Ok(()));
}

#[test]
fn other_heads_are_refused() {
    let files = recorded_files();
    let entries = &files["header_event"];
    for (from, to) in
        [("5 bits", "6 bits"), ("== 29", "== 28"), ("type_len    :", "other :"), ("== 31", "== 32")]
    {
        let changed = entries.replacen(from, to, 1);
        assert_ne!(&changed, entries);
        assert!(check_entry_layout(&changed).is_err(), "{from}");
    }
    let head = &files["header_page"];
    for (from, to) in
        [("u64 timestamp", "u64 time"), ("offset:8;\tsize:8;", "offset:8;\tsize:2;"), ("char data", "char x")]
    {
        let changed = head.replacen(from, to, 1);
        assert_ne!(&changed, head);
        assert!(PageLayout::parse(&changed).is_err(), "{from}");
    }
}

#[test]
fn absent_and_unusable_events_are_left_out_and_listed() {
    let formats = recorded_formats();
    assert!(formats.absent.contains(&"ipi/ipi_entry".to_owned()), "{:?}", formats.absent);
    assert_eq!(formats.unusable, []);
    assert_eq!(formats.present.len() + formats.absent.len(), TRACEPOINTS.len());

    let files = recorded_files();
    let formats = TraceFormats::parse(&files["header_page"], &files["header_event"], "", |tracepoint| {
        let text = files.get(&tracepoint.path()).cloned()?;
        Some(match tracepoint.name {
            "softirq_entry" => text.replace(" vec;", " vector;"),
            "tasklet_entry" => text.replace("size:2;", "size:4;"),
            // A copy of another's number.
            "nmi_handler" => files["sched/sched_switch"].clone(),
            _ => text,
        })
    })
    .unwrap();
    let unusable: Vec<String> = formats.unusable.iter().map(ToString::to_string).collect();
    assert_eq!(unusable.len(), 3, "{unusable:?}");
    for (text, words) in unusable.iter().zip(["\"vec\"", "common_type", "delta_ns"]) {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn each_tracepoint_is_listed_once() {
    let paths: BTreeSet<String> = TRACEPOINTS.iter().map(crate::Tracepoint::path).collect();
    assert_eq!(paths.len(), TRACEPOINTS.len());
    // Everything entered is left again.
    for path in &paths {
        for (enter, exit) in [("_entry", "_exit"), ("_start", "_end")] {
            if let Some(stem) = path.strip_suffix(enter) {
                assert!(paths.contains(&format!("{stem}{exit}")), "{path}");
            }
        }
    }
}
