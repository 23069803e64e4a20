//! Netlink messages and attributes as bytes, in the host's own byte order (netlink(7)).

use rustix::io::Errno;

/// Length, type, flags, sequence number, port.
const HEADER_BYTES: usize = 16;
/// Command, version, two reserved bytes.
pub(super) const GENERIC_HEADER_BYTES: usize = 4;
/// Attribute header: length and type.
const ATTRIBUTE_HEADER_BYTES: usize = 4;
const NLM_F_REQUEST: u16 = 1;
/// In a request: always answer. In an answer: attributes follow the error.
const NLM_F_ACK: u16 = 4;
/// In a request: list all entries.
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_ACK_TLVS: u16 = 0x200;
/// In an error: the request that it quotes is truncated to its header.
const NLM_F_CAPPED: u16 = 0x100;
/// The attribute of an error with its explanation.
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLMSG_ERROR: u16 = 2;
/// The end of a listing; carries an error number like [`NLMSG_ERROR`].
const NLMSG_DONE: u16 = 3;
/// Errors are negative, down to the kernel's MAX_ERRNO; rustix accepts none beyond it.
const ERROR_MIN: i32 = -4_095;
/// The type without its flags for nesting and byte order.
const ATTRIBUTE_TYPE: u16 = 0x3FFF;
/// Flag of an attribute that contains attributes.
pub const NESTED: u16 = 0x8000;

/// Kind of a netlink request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A query with one answer.
    Query,
    /// A query for all entries.
    List,
    /// A change, answered with an error or success.
    Change,
}

/// A request of a family with its body: for generic netlink a command and attributes.
pub(super) fn request(kind: Kind, family: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let flags = match kind {
        Kind::Query => NLM_F_REQUEST,
        Kind::List => NLM_F_REQUEST | NLM_F_DUMP,
        Kind::Change => NLM_F_REQUEST | NLM_F_ACK,
    };
    let length = HEADER_BYTES + body.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// One attribute, padded to a multiple of four.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = ATTRIBUTE_HEADER_BYTES + value.len();
    let mut bytes = u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(aligned(length), 0);
    bytes
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// One message of a packet.
struct Message<'a> {
    kind: u16,
    flags: u16,
    body: &'a [u8],
}

/// The messages of a packet that belong to a request, up to the first that does not fit.
fn messages_of(sequence: u32, mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let next = move || {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let message = bytes.get(..length)?;
        let body = message.get(HEADER_BYTES..)?;
        let found = Message { kind: u16_at(message, 4)?, flags: u16_at(message, 6)?, body };
        let is_answer = u32_at(message, 8) == Some(sequence);
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((is_answer, found))
    };
    std::iter::from_fn(next).filter_map(|(is_answer, message)| is_answer.then_some(message))
}

/// The result in the body of an error or of the end of a listing.
fn result_of(body: &[u8]) -> Result<(), Errno> {
    match u32_at(body, 0).map(u32::cast_signed) {
        Some(0) => Ok(()),
        Some(code @ ERROR_MIN..0) => Err(Errno::from_raw_os_error(-code)),
        _ => Err(Errno::BADMSG),
    }
}

/// The attributes in the answer to a request among the messages received, or its error; `None` if no message
/// answers it.
pub(super) fn answer_to(sequence: u32, bytes: &[u8]) -> Option<Result<&[u8], Errno>> {
    messages_of(sequence, bytes).find_map(|message| {
        if message.kind != NLMSG_ERROR {
            return Some(Ok(message.body.get(GENERIC_HEADER_BYTES..).unwrap_or_default()));
        }
        result_of(message.body).err().map(Err)
    })
}

/// Hands the bodies of a listing's entries to `each`; `None` if the listing continues in another packet.
pub(super) fn entries_of(
    sequence: u32,
    bytes: &[u8],
    mut each: impl FnMut(&[u8]),
) -> Option<Result<(), Errno>> {
    messages_of(sequence, bytes).find_map(|message| match message.kind {
        NLMSG_DONE | NLMSG_ERROR => Some(result_of(message.body)),
        _ => {
            each(message.body);
            None
        }
    })
}

/// The result of a request, with the driver's text, among the messages received; `None` if no message has it.
pub(super) fn end_of(sequence: u32, bytes: &[u8]) -> Option<Result<(), (Errno, String)>> {
    let end = messages_of(sequence, bytes).find(|message| message.kind == NLMSG_ERROR)?;
    Some(result_of(end.body).map_err(|errno| (errno, words(end.flags, end.body))))
}

/// The explanation of an error: after the error number comes the request's header, the request itself unless
/// it is truncated, and then attributes.
fn words(flags: u16, body: &[u8]) -> String {
    if flags & NLM_F_ACK_TLVS == 0 {
        return String::new();
    }
    let quoted = match u32_at(body, 4).map(usize::try_from) {
        Some(Ok(length)) if flags & NLM_F_CAPPED == 0 => length.max(HEADER_BYTES),
        _ => HEADER_BYTES,
    };
    let attributes = quoted.checked_add(4).and_then(|at| body.get(at.next_multiple_of(4)..));
    attributes.and_then(|bytes| Attributes(bytes).value_of(NLMSGERR_ATTR_MSG)).map(text).unwrap_or_default()
}

/// The attributes one after another, up to the first that does not fit.
#[derive(Debug, Clone)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_at(self.0, 0)?);
        let kind = u16_at(self.0, 2)? & ATTRIBUTE_TYPE;
        let value = self.0.get(ATTRIBUTE_HEADER_BYTES..length)?;
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    }
}

impl<'a> Attributes<'a> {
    /// The value of the first attribute of a type.
    pub fn value_of(&self, kind: u16) -> Option<&'a [u8]> {
        self.clone().find(|(found, _)| *found == kind).map(|(_, value)| value)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

/// The 32-bit number at an offset.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

/// The text up to the first zero.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests;
