//! Tests that do not need a kernel that traces.

use crate::tracefs::{
    CpuPipe, PipeStats, TraceError, Tracefs, instance::SharedFile, instance::other_tracers, remove_leftovers,
    symbols::names_in,
};
use lowlat_host_run::testing::TestTree;
use lowlat_trace::TraceNames;
use std::{collections::BTreeSet, io};

fn tracefs(tree: &TestTree) -> Tracefs {
    let base = tree.place("/t").to_string_lossy().into_owned();
    Tracefs::at(&base, "/t", None)
}

fn names(table: &str, addresses: &[u64]) -> Vec<(u64, String)> {
    let addresses: BTreeSet<u64> = addresses.iter().copied().collect();
    names_in(table.as_bytes(), &addresses).unwrap().names.into_iter().collect()
}

#[test]
fn functions_are_named_by_the_nearest_symbol_below() {
    // Unsorted, as modules and per-CPU symbols are in the real table.
    let table = "ffffffff81000000 T _stext\nffffffffc0200000 t hook\t[nf_tables]\nffffffff81000100 t tick_nohz\n\
        0000000000000000 D per_cpu_data\nffffffff81000180 d table\nnonsense\nffffffff8100zz00 T no\n";
    let named = names(
        table,
        &[0xffff_ffff_8100_0000, 0xffff_ffff_8100_0110, 0xffff_ffff_8100_01ff, 0xffff_ffff_c020_0000, 0x1000],
    );
    assert_eq!(
        named,
        [
            (0xffff_ffff_8100_0000, "_stext".to_owned()),
            (0xffff_ffff_8100_0110, "tick_nohz+0x10".to_owned()),
            (0xffff_ffff_8100_01ff, "tick_nohz+0xff".to_owned()),
            (0xffff_ffff_c020_0000, "hook [nf_tables]".to_owned()),
        ]
    );
    assert_eq!(names(table, &[0xffff_ffff_c030_0000]), [], "too far behind the last symbol");
    assert_eq!(names("", &[1]), []);
}

#[test]
fn hidden_addresses_are_reported() {
    let hidden = "0000000000000000 T _stext\n0000000000000000 t tick_nohz\n";
    let answer = names_in(hidden.as_bytes(), &[5].into()).unwrap();
    assert!(answer.is_hidden && answer.names.is_empty(), "{answer:?}");
    let answer = names_in(&b"0000000000001000 T _stext\n"[..], &[0x1000].into()).unwrap();
    assert!(!answer.is_hidden);
    let mut names = TraceNames::default();
    answer.add_to(&mut names);
    assert_eq!(names.functions.get(&0x1000).map(String::as_str), Some("_stext"));
}

#[test]
fn bytes_that_are_not_symbols_do_no_harm() {
    let mut bytes = vec![0xff; 100_000];
    bytes.extend(b"\nffffffff81000000 T _stext");
    let answer = names_in(&bytes[..], &[0xffff_ffff_8100_0000].into()).unwrap();
    assert_eq!(answer.names.len(), 1);
}

/// Pages that a pipe has read so far, by their first bytes, in a file of a hundred.
#[test]
fn the_last_sub_buffers_are_kept_in_bounded_memory() {
    const PAGE: usize = 4_096;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let mut bytes: Vec<u8> = (0..100).flat_map(|page| [page; PAGE]).collect();
    bytes.truncate(100 * PAGE - 1_000);
    std::fs::write(&path, bytes).unwrap();
    let pipe = || CpuPipe::new(0, SharedFile::new(std::fs::File::open(&path).unwrap()), PAGE);
    let read = |pipe: &mut CpuPipe, count: u32| {
        let mut seen = 0;
        pipe.drain_raw(|_| {
            seen += 1;
            seen < count
        })
        .unwrap();
        let kept = pipe.kept();
        assert!(kept.len() <= 10 * PAGE && kept.len().is_multiple_of(pipe.page_bytes()));
        kept.chunks(PAGE).map(|page| page[0]).collect::<Vec<u8>>()
    };
    let mut not_asked = pipe();
    assert!(read(&mut not_asked, 20).is_empty());
    not_asked.end_keeping();
    assert!(read(&mut not_asked, 20).is_empty());
    let mut all = pipe();
    all.keep(10 * PAGE);
    assert_eq!(read(&mut all, 3), [0, 1, 2]);
    assert_eq!(read(&mut all, 97), (90..100).collect::<Vec<u8>>());
    // The last one was not read in full.
    let kept = all.kept();
    assert_eq!((kept[10 * PAGE - 1_001], kept[10 * PAGE - 1_000], kept[10 * PAGE - 1]), (99, 0, 0));
    // Around a moment: half of the sub-buffers before it and as many after it, even if keeping is ended again.
    let mut around = pipe();
    around.keep(10 * PAGE);
    read(&mut around, 30);
    around.end_keeping();
    assert_eq!(read(&mut around, 3), (23..33).collect::<Vec<u8>>());
    around.end_keeping();
    assert_eq!(read(&mut around, 60), (25..35).collect::<Vec<u8>>());
}

#[test]
fn stats_of_a_buffer_are_read() {
    let text = "entries: 129\noverrun: 7\ncommit overrun: 2\nbytes: 3560\noldest event ts: 12.5\n\
        now ts: 32482621117622\ndropped events: 3\nread events: 683\n";
    let stats = PipeStats::parse(text);
    let expected = PipeStats {
        entry_count: 129,
        overrun_count: 7,
        commit_overrun_count: 2,
        dropped_count: 3,
        read_count: 683,
    };
    assert_eq!((stats, stats.lost_count()), (expected, 12));
    assert_eq!(PipeStats::parse("overrun\noverrun: many\n"), PipeStats::default());
}

#[test]
fn other_tracers_are_facts() {
    let tree = TestTree::of(&[
        ("/t/current_tracer", "function\n"),
        ("/t/set_event", ""),
        ("/t/instances/one/current_tracer", "nop\n"),
        ("/t/instances/one/set_event", "sched:sched_switch\n"),
        ("/t/instances/two/current_tracer", "nop\n"),
        ("/t/instances/two/set_event", "irq:a\nirq:b\nirq:c\n"),
        ("/t/instances/quiet/current_tracer", "nop\n"),
        ("/t/instances/quiet/set_event", "\n"),
        ("/t/instances/own/set_event", "irq:a\n"),
    ]);
    assert_eq!(
        other_tracers(&tracefs(&tree), "own"),
        [
            "top level: tracer \"function\" is on",
            "instance \"one\": event sched:sched_switch is on",
            "instance \"two\": 3 events are on, starting with irq:a",
        ]
    );
    assert_eq!(other_tracers(&tracefs(&TestTree::new()), ""), Vec::<String>::new());
}

#[test]
fn only_instances_of_dead_processes_are_left_over() {
    let alive = std::process::id();
    let started = crate::tracefs::instance::start_time(alive).unwrap();
    let living = format!("lowlat-{alive}-{started}-0");
    let reused = format!("lowlat-{alive}-{}-0", started + 1);
    let tree = TestTree::new()
        .dir(&format!("/t/instances/{living}"))
        .dir(&format!("/t/instances/{reused}"))
        .dir("/t/instances/lowlat-4294967295-5-0")
        .dir("/t/instances/lowlat-of-someone")
        .dir("/t/instances/other-4294967295-5-0");
    let removed = remove_leftovers(&tracefs(&tree));
    assert!(removed.iter().all(|leftover| leftover.problem.is_none()), "{removed:?}");
    let mut names: Vec<String> = removed.into_iter().map(|leftover| leftover.name).collect();
    names.sort();
    let mut expected = vec!["lowlat-4294967295-5-0".to_owned(), reused];
    expected.sort();
    assert_eq!(names, expected);
    let mut left = vec![living, "lowlat-of-someone".to_owned(), "other-4294967295-5-0".to_owned()];
    left.sort();
    assert_eq!(tracefs(&tree).list("instances"), left);
}

#[test]
fn a_leftover_that_stays_says_why() {
    // A plain directory that is not empty is not removed, like an instance in use.
    let tree = TestTree::of(&[("/t/instances/lowlat-4294967295-5-0/file", "")]);
    let left = remove_leftovers(&tracefs(&tree));
    let problem = left.first().and_then(|leftover| leftover.problem.as_ref()).unwrap().to_string();
    assert!(problem.contains("rmdir /t/instances/lowlat-4294967295-5-0"), "{problem}");
}

#[test]
fn refusals_have_a_cause_and_a_next_step() {
    let said = |kind: io::ErrorKind| TraceError::cannot("write \"1\" to", "/t/x", &kind.into()).to_string();
    assert!(said(io::ErrorKind::PermissionDenied).contains("run as root"));
    assert!(said(io::ErrorKind::ReadOnlyFilesystem).contains("read-only"));
    assert!(said(io::ErrorKind::InvalidInput).contains("cannot write \"1\" to /t/x"));
    for kind in
        [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::InvalidInput]
    {
        assert!(said(kind).contains("--no-causes"), "{}", said(kind));
    }
}
