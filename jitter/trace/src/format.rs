//! The formats that the kernel publishes for its trace: `events/<system>/<event>/format`,
//! `events/header_page` and `events/header_event` (kernel doc: Documentation/trace/events.rst, "Event
//! formats").

use lowlat_host::Unparsable;
use thiserror::Error;

/// Maximum number of fields kept per event; the kernel's largest have a few dozen.
const FIELDS_MAX: usize = 256;
/// Maximum end of a field in bytes: an event fits into a sub-buffer.
const FIELD_END_MAX: usize = 1 << 20;

/// A format that cannot be used: its name, the line, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("trace format of {0}")]
pub struct FormatError(pub Unparsable);

/// The layout of one event's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// Its name within its system: "sched_switch".
    pub name: String,
    /// The number in `common_type` of its records, which differs between boots and kernels.
    pub id: u16,
    /// Its fields, the common ones first, in the kernel's order.
    pub fields: Vec<Field>,
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The C type without the name, followed by an array's length: `unsigned int`, `char[16]`, `__data_loc
    /// char[]`.
    pub c_type: String,
    pub name: String,
    /// Offset in the record, in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// The number is signed. Kernels before 2.6.37 do not report this, which counts as unsigned.
    pub is_signed: bool,
    pub place: Place,
}

/// Location of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the field itself.
    Here,
    /// After the fixed fields: the field contains its offset from the record's start (low 16 bits) and its
    /// length (high 16 bits).
    DataLoc,
    /// As [`Place::DataLoc`], but counted from the end of this field.
    RelLoc,
}

impl EventFormat {
    /// Parses the text of a `format` file. Errors name it `event`: "sched/sched_switch".
    ///
    /// # Errors
    /// [`FormatError`] if the name, the number or a field is not in the kernel's format.
    pub fn parse(event: &str, text: &str) -> Result<Self, FormatError> {
        let error = |raw: &str, expected: &str| FormatError(Unparsable::new(event, raw, expected));
        let (mut name, mut id, mut fields) = (None, None, Vec::new());
        for line in text.lines().map(str::trim) {
            if let Some(value) = line.strip_prefix("name:") {
                name = Some(value.trim().to_owned());
            } else if let Some(value) = line.strip_prefix("ID:") {
                let number = value.trim().parse::<u16>();
                id = Some(number.map_err(|_| error(line, "an ID from 0 to 65535"))?);
            } else if line.starts_with("field:") {
                if fields.len() == FIELDS_MAX {
                    return Err(error(line, &format!("at most {FIELDS_MAX} fields")));
                }
                fields.push(Field::parse(event, line)?);
            } else if line.starts_with("print fmt:") {
                break;
            }
        }
        let first_line = text.lines().next().unwrap_or("");
        let name = name.ok_or_else(|| error(first_line, "a line \"name: <event>\""))?;
        let id = id.ok_or_else(|| error(first_line, "a line \"ID: <number>\""))?;
        Ok(Self { name, id, fields })
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Parses `field:<type> <name>; offset:<n>; size:<n>; signed:<0 or 1>;`.
    fn parse(event: &str, line: &str) -> Result<Self, FormatError> {
        let error = |expected: &str| FormatError(Unparsable::new(event, line, expected));
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next().and_then(|part| part.strip_prefix("field:")).unwrap_or("");
        let (mut offset, mut size, mut is_signed) = (None, None, false);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", value)) => offset = value.parse::<usize>().ok(),
                Some(("size", value)) => size = value.parse::<usize>().ok(),
                Some(("signed", value)) => is_signed = value != "0",
                _ => {}
            }
        }
        let offset = offset.ok_or_else(|| error("\"offset:\" with a number"))?;
        let size = size.ok_or_else(|| error("\"size:\" with a number"))?;
        if offset.checked_add(size).is_none_or(|end| end > FIELD_END_MAX) {
            return Err(error("a field within the first MiB of the record"));
        }
        let (c_type, name) = split_declaration(declaration).ok_or_else(|| error("a C type and a name"))?;
        let place = match () {
            () if c_type.starts_with("__data_loc ") => Place::DataLoc,
            () if c_type.starts_with("__rel_loc ") => Place::RelLoc,
            () => Place::Here,
        };
        if place != Place::Here && size != 4 {
            return Err(error("a __data_loc or __rel_loc of 4 bytes"));
        }
        Ok(Self { c_type, name, offset, size, is_signed, place })
    }

    /// The number in this field of a record; `None` if the record ends before it, or if it is not a number of
    /// 1, 2, 4 or 8 bytes. Signed ones are extended to 64 bits.
    pub fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        native_number(bytes, self.is_signed)
    }

    /// The bytes of this field, following `__data_loc` and `__rel_loc`; `None` if they are outside the
    /// record.
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        if self.place == Place::Here {
            return record.get(self.offset..self.offset.checked_add(self.size)?);
        }
        let location = self.number(record)?;
        let base = if self.place == Place::RelLoc { self.offset.checked_add(self.size)? } else { 0 };
        let start = base.checked_add(usize::try_from(location & 0xffff).ok()?)?;
        let length = usize::try_from(location >> 16 & 0xffff).ok()?;
        record.get(start..start.checked_add(length)?)
    }

    /// The bytes of this field up to the first NUL.
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = self.bytes(record)?;
        bytes.split(|byte| *byte == 0).next()
    }
}

/// A number in this machine's byte order.
pub(super) fn native_number(bytes: &[u8], is_signed: bool) -> Option<u64> {
    Some(match (bytes, is_signed) {
        (&[a], false) => u64::from(a),
        (&[a], true) => i64::from(a.cast_signed()).cast_unsigned(),
        (&[a, b], false) => u64::from(u16::from_ne_bytes([a, b])),
        (&[a, b], true) => i64::from(i16::from_ne_bytes([a, b])).cast_unsigned(),
        (&[a, b, c, d], false) => u64::from(u32::from_ne_bytes([a, b, c, d])),
        (&[a, b, c, d], true) => i64::from(i32::from_ne_bytes([a, b, c, d])).cast_unsigned(),
        _ => u64::from_ne_bytes(bytes.try_into().ok()?),
    })
}

/// `char prev_comm[16]` as (`char[16]`, `prev_comm`); `const char *reason` as (`const char *`, `reason`).
fn split_declaration(declaration: &str) -> Option<(String, String)> {
    let (head, array) = match declaration.strip_suffix(']') {
        Some(open) => {
            let (head, length) = open.rsplit_once('[')?;
            (head, format!("[{length}]"))
        }
        None => (declaration, String::new()),
    };
    let (c_type, name) = head.trim_end().rsplit_once([' ', '*'])?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) || c_type.trim().is_empty() {
        return None;
    }
    // The star of "char *name" belongs to the type.
    let is_pointer = head.as_bytes().get(c_type.len()) == Some(&b'*');
    let star = if is_pointer { "*" } else { "" };
    Some((format!("{}{array}", format!("{c_type}{star}").trim()), name.to_owned()))
}

/// The layout of a sub-buffer's header, from `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Offset of the 8-byte time stamp.
    pub timestamp_offset: usize,
    /// Offset of the number of committed bytes.
    pub commit_offset: usize,
    /// Its size: 8 bytes on a 64-bit kernel, 4 on others.
    pub commit_size: usize,
    /// Offset of the first entry.
    pub data_offset: usize,
    /// Bytes of entries in a sub-buffer of the top-level trace; an instance may have larger ones.
    pub data_size: usize,
}

impl PageLayout {
    /// Parses the text of `events/header_page`.
    ///
    /// # Errors
    /// [`FormatError`] if a field is missing or has an unknown size.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let file = "events/header_page";
        let mut fields = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| line.starts_with("field:")).take(FIELDS_MAX) {
            fields.push(Field::parse(file, line)?);
        }
        let field = |name: &str, sizes: &[usize]| {
            fields
                .iter()
                .find(|field| field.name == name && (sizes.is_empty() || sizes.contains(&field.size)))
                .ok_or_else(|| {
                    let expected = format!("a field \"{name}\" of a size in {sizes:?}, any if empty");
                    FormatError(Unparsable::new(file, text, expected))
                })
        };
        let (timestamp, commit, data) =
            (field("timestamp", &[8])?, field("commit", &[4, 8])?, field("data", &[])?);
        Ok(Self {
            timestamp_offset: timestamp.offset,
            commit_offset: commit.offset,
            commit_size: commit.size,
            data_offset: data.offset,
            data_size: data.size,
        })
    }
}

/// Checks that `events/header_event` describes the entries that [`super::Page`] reads. They have been the
/// same since their first publication, so a kernel with others is rejected rather than guessed at.
///
/// # Errors
/// [`FormatError`] with the line that differs or is missing.
pub fn check_entry_layout(text: &str) -> Result<(), FormatError> {
    // Kernels before 4.17 have no absolute time stamps and do not list them.
    let known = [
        ("type_len", "5 bits", true),
        ("time_delta", "27 bits", true),
        ("array", "32 bits", true),
        ("padding", "type == 29", true),
        ("time_extend", "type == 30", true),
        ("time_stamp", "type == 31", false),
        ("data max type_len", "== 28", true),
    ];
    for (name, value, must_be) in known {
        let expected = format!("\"{name} : {value}\"");
        let error = |raw: &str| Err(FormatError(Unparsable::new("events/header_event", raw, &expected)));
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with([':', '=']))
        });
        match line {
            Some(line) if line.ends_with(value) => {}
            Some(line) => return error(line),
            None if must_be => return error(text),
            None => {}
        }
    }
    Ok(())
}
