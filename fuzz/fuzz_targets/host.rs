//! Every reader and every judge on a host whose files hold arbitrary bytes: the input is a list of
//! `path NUL length(u16, little endian) bytes`. Run it with `-rss_limit_mb=1024 -timeout=20`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_catalogue::CATALOGUE;
use lowlat_host_run::{Root, snapshot};
use lowlat_host::{Allocation, Profile, Role};
use lowlat_settings::{Context, audit::Audit};

fuzz_target!(|input: &[u8]| {
    let host = snapshot::read(&Root::in_memory("fuzz", files(input)), CATALOGUE);
    for profile in Profile::ALL {
        let role = Role { profile, ..Role::default() };
        let allocation = Allocation::choose(&host, &role);
        let _ = Audit::of(&Context { host: &host, role: &role, allocation: &allocation, profile, catalogue: CATALOGUE });
    }
});

fn files(mut rest: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        let path = String::from_utf8_lossy(&rest[..end]).into_owned();
        let Some((length, after)) = rest[end + 1..].split_first_chunk::<2>() else { break };
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        files.push((path, after[..length].to_vec()));
        rest = &after[length..];
    }
    files
}
