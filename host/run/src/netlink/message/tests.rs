use super::{super::Connection, *};

fn packet(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap();
    let head = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0, 0], &sequence.to_ne_bytes(), &[0; 4]];
    [&head.concat()[..], body].concat()
}

#[test]
fn the_answer_is_distinguished_from_other_messages_and_errors() {
    let acknowledgement = packet(2, 7, &0i32.to_ne_bytes());
    let other = packet(30, 6, &[9; 8]);
    let answer = packet(30, 7, &[1, 1, 0, 0, 5, 5, 5, 5]);
    let all = [other.clone(), acknowledgement.clone(), answer].concat();
    assert_eq!(answer_to(7, &all), Some(Ok(&[5, 5, 5, 5][..])));
    assert_eq!(answer_to(7, &other), None);
    let refused = packet(2, 7, &(-95i32).to_ne_bytes());
    assert_eq!(answer_to(7, &refused), Some(Err(Errno::OPNOTSUPP)));
    assert_eq!(answer_to(7, &acknowledgement), None);
}

#[test]
fn a_listing_ends_with_its_own_message() {
    let entry = |byte: u8| packet(30, 7, &[11, 1, 0, 0, byte, byte, byte, byte]);
    let done = packet(NLMSG_DONE, 7, &0i32.to_ne_bytes());
    let mut found = Vec::new();
    let first = [entry(1), packet(30, 6, &[9; 8]), entry(2)].concat();
    assert_eq!(entries_of(7, &first, |entry| found.push(entry[4])), None, "it continues in another packet");
    assert_eq!(entries_of(7, &[entry(3), done].concat(), |entry| found.push(entry[4])), Some(Ok(())));
    assert_eq!(found, [1, 2, 3]);
    let refused = packet(NLMSG_ERROR, 7, &(-95i32).to_ne_bytes());
    assert_eq!(entries_of(7, &refused, |_| panic!("an error is no entry")), Some(Err(Errno::OPNOTSUPP)));
}

#[test]
fn the_end_of_a_change_carries_the_words_of_the_driver() {
    const CAPPED: u16 = 0x100;
    const WITH_WORDS: u16 = 0x200;
    let error = |flags: u16, quoted: &[u8]| {
        let length = u32::try_from(16 + quoted.len()).unwrap().to_ne_bytes();
        let header = [&length[..], &[0; 12], quoted].concat();
        let words = attribute(1, b"only one queue\0");
        let mut bytes = packet(2, 7, &[&(-22i32).to_ne_bytes()[..], &header, &words].concat());
        bytes.splice(6..8, flags.to_ne_bytes());
        bytes
    };
    let refused = |text: &str| Some(Err((Errno::INVAL, text.to_owned())));
    assert_eq!(end_of(7, &error(WITH_WORDS, &[9; 8])), refused("only one queue"));
    assert_eq!(end_of(7, &error(WITH_WORDS | CAPPED, &[])), refused("only one queue"));
    assert_eq!(end_of(7, &error(0, &[9; 8])), refused(""));
    let (answer, done) = (packet(30, 7, &[0; 8]), packet(2, 7, &0i32.to_ne_bytes()));
    assert_eq!(end_of(7, &[answer.clone(), done].concat()), Some(Ok(())));
    assert_eq!(end_of(7, &answer), None);
    assert_eq!(end_of(8, &error(0, &[])), None);
}

#[test]
fn a_family_that_no_kernel_has_is_not_found() {
    let name = attribute(2, b"lowlat-none\0");
    match Connection::open(super::super::Family::Ethtool) {
        Ok(_) => {
            let mut connection = Connection::open_controller().unwrap();
            assert_eq!(connection.ask(3, &name), Err(Errno::NOENT));
        }
        Err(error) => eprintln!("skipped: no generic netlink here: {error}"),
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = (answer_to(0, &bytes), text(&bytes));
        let _ = answer_to(7, &packet(2, 7, &bytes));
        let mut with_words = packet(2, 7, &[&(-1i32).to_ne_bytes()[..], &bytes].concat());
        with_words.splice(6..8, 0x200u16.to_ne_bytes());
        let _ = (end_of(7, &with_words), end_of(0, &bytes));
        let _ = (entries_of(0, &bytes, |_| {}), entries_of(7, &with_words, |_| {}));
    }
}
