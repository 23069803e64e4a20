//! Files of ticks, decompressed.

use flate2::read::MultiGzDecoder;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

/// Largest file that is read as a whole: a day of a large exchange has less.
const BYTES_MAX: u64 = 16 << 30;

/// Opens a file, and decompresses it if it is packed with gzip.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    let is_packed = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) })
}

/// The bytes of a file, and a sentence if they end early: compressed ones may be cut off or damaged.
pub fn read_all(file: impl Read) -> io::Result<(Vec<u8>, Option<String>)> {
    let mut bytes = Vec::new();
    match file.take(BYTES_MAX + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > BYTES_MAX => {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 16 GiB"))
        }
        Err(error) if bytes.is_empty() || error.raw_os_error().is_some() => Err(error),
        end => Ok((bytes, end.err().map(|error| format!("the compressed file is damaged ({error})")))),
    }
}
