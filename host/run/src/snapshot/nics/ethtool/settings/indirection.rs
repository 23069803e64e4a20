//! The indirection table of receive side scaling: the number of queues over which its entries are spread equally, as
//! `ethtool -X IF equal N` takes it, or all its entries.

use super::Value;
use crate::snapshot::ethtool::ioctl;
use rustix::io::Errno;

pub(super) const NAME: &str = "equal";
pub(super) const EXPECTED: &str = "a number of queues, or a table such as 0,0,1,1";

pub(super) fn is_table(text: &str) -> bool {
    text.contains(',') && text.split(',').all(|entry| entry.parse::<u32>().is_ok())
}

pub(super) fn get(interface: &str) -> Result<Option<Value>, Errno> {
    Ok(Some(value(&ioctl::indirection(interface)?)))
}

pub(super) fn set(interface: &str, to: &Value) -> Result<(), Errno> {
    let table = match to {
        Value::Number(queues) => {
            let queues = u32::try_from(*queues).ok().filter(|queues| *queues > 0).ok_or(Errno::RANGE)?;
            let entries = ioctl::indirection(interface)?.len();
            (0..queues).cycle().take(entries).collect()
        }
        other => {
            other.to_string().split(',').map(|entry| entry.parse().unwrap_or(u32::MAX)).collect::<Vec<_>>()
        }
    };
    ioctl::set_indirection(interface, &table)
}

fn value(table: &[u32]) -> Value {
    match lowlat_settings::change::nic::equal_queues(table) {
        Some(queues) => Value::Number(queues.into()),
        None => Value::Text(table.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
    }
}
