//! Sizes of messages: the lists of sfnt-pingpong, and lists as users type them.

use thiserror::Error;

/// Sizes of sfnt-pingpong for byte streams: 1 to 65,536.
pub const STREAM_SIZES: [u32; 17] =
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536];
/// Sizes of sfnt-pingpong for datagrams: 0 to 32,768, with the two around the payload of one Ethernet frame.
pub const DATAGRAM_SIZES: [u32; 19] =
    [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 1_472, 1_473, 2_048, 4_096, 8_192, 16_384, 32_768];
/// Most sizes in a list.
pub(super) const COUNT_MAX: usize = 1_024;

/// Reason why a list of sizes cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SizesError {
    /// A part of the list is neither a size nor a range.
    #[error("\"{0}\" is not a size; write a list such as 32,64 or 8-64+8 or 1-1024*2")]
    Part(String),
    /// The list is too long.
    #[error("more than {COUNT_MAX} sizes; name fewer")]
    TooMany,
}

/// Parses a list such as `1,2,8-64+8,128-1024*2`, as sfnt-pingpong does.
///
/// # Errors
/// [`SizesError`] if a part is not a size, or the list is longer than 1,024.
pub fn parse_sizes(text: &str) -> Result<Vec<u32>, SizesError> {
    let mut sizes = Vec::new();
    for part in text.split(',').map(str::trim) {
        let wrong = || SizesError::Part(part.to_owned());
        let Some((from, rest)) = part.split_once('-') else {
            sizes.push(part.parse().map_err(|_| wrong())?);
            continue;
        };
        let (to, next) = step(rest).ok_or_else(wrong)?;
        let mut size: u32 = from.parse().map_err(|_| wrong())?;
        while size <= to {
            sizes.push(size);
            if sizes.len() > COUNT_MAX {
                return Err(SizesError::TooMany);
            }
            size = next(size).filter(|next| *next > size).ok_or_else(wrong)?;
        }
    }
    if sizes.len() > COUNT_MAX { Err(SizesError::TooMany) } else { Ok(sizes) }
}

/// Parses the end and the step of a range: `64+8`, `1024*2`; a plain end has steps of 1.
fn step(text: &str) -> Option<(u32, impl Fn(u32) -> Option<u32>)> {
    let (to, by, is_factor) = if let Some((to, by)) = text.split_once('+') {
        (to, by, false)
    } else if let Some((to, by)) = text.split_once('*') {
        (to, by, true)
    } else {
        (text, "1", false)
    };
    let (to, by): (u32, u32) = (to.parse().ok()?, by.parse().ok()?);
    Some((to, move |size: u32| if is_factor { size.checked_mul(by) } else { size.checked_add(by) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        assert_eq!(parse_sizes("1, 2,8-32+8"), Ok(vec![1, 2, 8, 16, 24, 32]));
        assert_eq!(parse_sizes("1-65536*2"), Ok(STREAM_SIZES.to_vec()));
        assert_eq!(parse_sizes("3-5"), Ok(vec![3, 4, 5]));
        assert_eq!(parse_sizes("0"), Ok(vec![0]));
    }

    #[test]
    fn wrong_and_endless_lists_are_refused() {
        for wrong in ["", "1,", "x", "1-2-3", "8-64+0", "0-8*2", "1-8*1", "-1", "4294967296"] {
            assert!(matches!(parse_sizes(wrong), Err(SizesError::Part(_))), "{wrong}");
        }
        assert_eq!(parse_sizes("0-4294967295"), Err(SizesError::TooMany));
    }
}
