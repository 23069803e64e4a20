//! systemd's own socket, for a client that follows the D-Bus specification to the letter.
//!
//! On it systemd sends `org.freedesktop.systemd1` as the sender of its messages, where the specification
//! requires a unique name (":1.0"), and zbus rejects messages with other names. So systemd's messages pass
//! through a thread that changes the name to `:rg.freedesktop.systemd1`, which has the same length and is
//! valid.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    thread,
};

/// The header field of the sender: its number, the signature of a string, the length, and the text.
const SENDER: &[u8] = b"\x07\x01s\0";
const NAME: &[u8] = b"org.freedesktop.systemd1\0";
/// Maximum size of a message in bytes; all units of a large host with all their properties are smaller.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of a line of the handshake, in bytes.
const LINE_BYTES_MAX: u64 = 4 << 10;

/// Connects to systemd at `path`; the returned end receives valid names.
pub(super) fn connect(path: &str) -> io::Result<UnixStream> {
    let systemd = UnixStream::connect(path)?;
    let (ours, theirs) = UnixStream::pair()?;
    let (mut asked, mut asks) = (systemd.try_clone()?, theirs.try_clone()?);
    spawn(move || {
        let _ = io::copy(&mut asks, &mut asked);
        let _ = asked.shutdown(Shutdown::Both);
    })?;
    spawn(move || {
        // Its end, for whatever reason, ends the connection, and zbus reports it.
        let _ = pass_on(&mut BufReader::new(&systemd), &mut &theirs);
        let _ = theirs.shutdown(Shutdown::Both);
        let _ = systemd.shutdown(Shutdown::Both);
    })?;
    Ok(ours)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("systemd-socket".into()).spawn(work).map(|_| ())
}

/// Forwards lines of the handshake unchanged, and messages with a valid sender name.
fn pass_on(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    loop {
        let Some(first) = from.fill_buf()?.first().copied() else { return Ok(()) };
        let mut bytes = Vec::new();
        match first {
            b'l' => message(from, &mut bytes, u32::from_le_bytes)?,
            b'B' => message(from, &mut bytes, u32::from_be_bytes)?,
            _ => {
                from.take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)?;
            }
        }
        to.write_all(&bytes)?;
    }
}

/// Reads a message: 16 bytes with its lengths, header fields padded to a multiple of 8, and a body.
fn message(from: &mut impl Read, bytes: &mut Vec<u8>, number: fn([u8; 4]) -> u32) -> io::Result<()> {
    let mut head = [0; 16];
    from.read_exact(&mut head)?;
    let [_, _, _, _, b0, b1, b2, b3, _, _, _, _, f0, f1, f2, f3] = head;
    let (body, fields) = (number([b0, b1, b2, b3]), u64::from(number([f0, f1, f2, f3])).next_multiple_of(8));
    let rest = fields + u64::from(body);
    if rest > MESSAGE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    bytes.extend(head);
    if u64::try_from(from.take(rest).read_to_end(bytes)?).ok() != Some(rest) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let end = usize::try_from(fields).ok().and_then(|fields| fields.checked_add(head.len()));
    if let Some(fields) = end.and_then(|end| bytes.get_mut(head.len()..end)) {
        make_valid(fields);
    }
    Ok(())
}

/// Replaces the first letter of the sender's name with a colon.
fn make_valid(fields: &mut [u8]) {
    // Four bytes of length are between the signature and the text.
    let name_at = SENDER.len() + 4;
    let is_sender = |field: &[u8]| {
        field.starts_with(SENDER) && field.get(name_at..).is_some_and(|text| text.starts_with(NAME))
    };
    // Fields start at multiples of 8.
    let found = (0..fields.len()).step_by(8).find(|at| fields.get(*at..).is_some_and(is_sender));
    if let Some(letter) = found.and_then(|at| fields.get_mut(at + name_at)) {
        *letter = b':';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A message with a sender, another header field before it, and a body that resembles a header field.
    fn message_of(sender: &[u8]) -> Vec<u8> {
        let mut fields = b"\x05\x01u\0\x07\0\0\0".to_vec();
        fields.extend(SENDER);
        fields.extend(u32::try_from(sender.len() - 1).unwrap().to_le_bytes());
        fields.extend(sender);
        let body: Vec<u8> = [SENDER, &24u32.to_le_bytes(), NAME].concat();
        let mut bytes = b"l\x02\x01\x01".to_vec();
        bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend(9u32.to_le_bytes());
        bytes.extend(u32::try_from(fields.len()).unwrap().to_le_bytes());
        bytes.extend(&fields);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(body);
        bytes
    }

    fn passed_on(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let _ = pass_on(&mut &bytes[..], &mut out);
        out
    }

    #[test]
    fn the_sender_gets_a_valid_name_and_nothing_else_is_changed() {
        let handshake = b"OK 0123456789abcdef\r\nAGREE_UNIX_FD\r\n".to_vec();
        let said = [handshake.clone(), message_of(NAME), message_of(b":1.4\0")].concat();
        let expected = [handshake, message_of(b":rg.freedesktop.systemd1\0"), message_of(b":1.4\0")].concat();
        assert_eq!(passed_on(&said), expected);
    }

    #[test]
    fn a_message_that_is_cut_or_far_too_long_ends_it() {
        let whole = message_of(NAME);
        assert!(passed_on(&whole[..whole.len() - 1]).is_empty());
        let endless = [b"l\x02\x01\x01".as_slice(), &[0xff; 12], &[0; 100]].concat();
        assert!(passed_on(&endless).is_empty());
    }

    #[test]
    fn both_ends_hear_each_other_until_one_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private");
        let listener = UnixListener::bind(&path).unwrap();
        let mut ours = connect(path.to_str().unwrap()).unwrap();
        let (mut systemd, _) = listener.accept().unwrap();
        ours.write_all(b"\0AUTH\r\n").unwrap();
        let mut heard = [0; 7];
        systemd.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"\0AUTH\r\n");
        systemd.write_all(&message_of(NAME)).unwrap();
        drop(systemd);
        let mut said = Vec::new();
        ours.read_to_end(&mut said).unwrap();
        assert_eq!(said, message_of(b":rg.freedesktop.systemd1\0"));
        assert!(connect("/nonexistent/private").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = passed_on(&bytes);
            let _ = passed_on(&[b"l\x02\x01\x01".as_slice(), &bytes].concat());
        }
    }
}
