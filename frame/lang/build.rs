//! Compresses the catalogues, which would be a fortieth of the binary.

use flate2::{Compression, write::GzEncoder};
use std::{env, fs, io::Write as _, path::Path};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=zh");
    let out = env::var("OUT_DIR")?;
    for entry in fs::read_dir("zh")? {
        let entry = entry?;
        let file = fs::File::create(Path::new(&out).join(entry.file_name()).with_extension("po.gz"))?;
        let mut packed = GzEncoder::new(file, Compression::best());
        packed.write_all(&fs::read(entry.path())?)?;
        packed.finish()?;
    }
    Ok(())
}
