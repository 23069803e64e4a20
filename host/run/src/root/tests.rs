use super::*;
use std::os::unix::fs::symlink;

fn host() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("sys/a")).unwrap();
    std::fs::create_dir_all(dir.path().join("proc")).unwrap();
    std::fs::write(dir.path().join("sys/a/list"), "0-3,8\n").unwrap();
    std::fs::write(dir.path().join("sys/a/junk"), [0xff, 0xfe, 0]).unwrap();
    symlink("/sys/a", dir.path().join("sys/b")).unwrap();
    symlink("../../../../../../sys/a/list", dir.path().join("sys/out")).unwrap();
    symlink("loop", dir.path().join("sys/loop")).unwrap();
    let root = Root::open(dir.path()).unwrap();
    (dir, root)
}

#[test]
fn links_stay_inside_the_root() {
    let (_dir, root) = host();
    assert_eq!(root.read_cpu_list("/sys/b/list").to_string(), "0-3,8");
    assert_eq!(root.read("/sys/out").text(), "0-3,8");
    assert_eq!(root.real_path("/sys/b/list").text(), "/sys/a/list");
    assert_eq!(root.read_link("/sys/b").text(), "/sys/a");
    assert!(matches!(root.read("/sys/loop"), Reading::Unparsable(_)));
}

#[test]
fn an_interface_is_called_live_and_read_from_a_tree() {
    let (dir, root) = host();
    let called = |root: &Root| root.interface("systemd/units", || Reading::Known(b"called".to_vec()));
    assert_eq!(called(&Root::live()), Reading::Known(b"called".to_vec()));
    assert!(called(&root).is_absent());
    std::fs::create_dir_all(dir.path().join(".lowlat/interface/systemd")).unwrap();
    std::fs::write(dir.path().join(".lowlat/interface/systemd/units"), "kept").unwrap();
    assert_eq!(called(&root), Reading::Known(b"kept".to_vec()));
}

#[test]
fn a_part_of_a_file_is_read_and_recorded_in_place_of_the_file() {
    let (_dir, root) = host();
    root.start_recording();
    let part = root.read_part("/sys/b/list", |mut file| {
        let mut bytes = vec![0; 3];
        io::Read::read_exact(&mut file, &mut bytes)?;
        Ok(bytes)
    });
    assert_eq!(part, Reading::Known(b"0-3".to_vec()));
    assert_eq!(root.take_recording().reads["/sys/a/list"], Outcome::Value(b"0-3".to_vec()));
    assert!(root.read_part("/sys/a/none", |_| Ok(Vec::new())).is_absent());
}

#[test]
fn absent_unparsable_and_directories_are_distinguished() {
    let (_dir, root) = host();
    assert!(root.read("/sys/a/none").is_absent());
    assert!(root.read("/sys/a/list/below").is_absent());
    assert!(matches!(root.read("/sys/a/junk"), Reading::Unparsable(_)));
    assert!(matches!(root.read("/sys/a"), Reading::Unparsable(_)));
    let Reading::Unparsable(why) = root.read_as::<u32>("/sys/a/list", "a number") else { panic!() };
    assert_eq!(why.to_string(), "/sys/a/list: found \"0-3,8\", expected a number");
}

#[test]
fn globs_and_lists_are_sorted() {
    let (_dir, root) = host();
    assert_eq!(root.glob("/sys/*/list"), ["/sys/a/list", "/sys/b/list"]);
    assert_eq!(root.list("/sys/a").into_known().unwrap(), ["junk", "list"]);
}

#[test]
fn a_directory_without_a_host_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path| Root::open(path).unwrap_err().to_string();
    assert!(refused(dir.path()).contains("it contains neither proc/ nor sys/"));
    assert!(refused(&dir.path().join("none")).contains("as a host root: No such file"));
}

proptest::proptest! {
    /// A limited run of the fuzz target `capture`: arbitrary bytes, plain and after each compression's magic
    /// number.
    #[test]
    fn no_bytes_panic_as_a_capture(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2_000)) {
        let ustar = [vec![b'a'; 257], b"ustar".to_vec()].concat();
        for head in [&[][..], &[0x1f, 0x8b, 8, 0], b"BZh9", &ustar] {
            if let Ok(root) = Root::from_capture("arbitrary", [head, &bytes].concat().as_slice()) {
                let _ = root.glob("/*/*");
            }
        }
    }
}
