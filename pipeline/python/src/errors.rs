//! Exceptions, each with what was found, what was expected, and what to do.

use lowlat_ipc::stream;
use lowlat_node::{NodeEnded, NodePublishError};
use pyo3::{
    create_exception,
    exceptions::{PyException, PyValueError},
    prelude::*,
};
use std::fmt::Display;

create_exception!(lowlat, LowlatError, PyException, "Base class: what went wrong, and what to do about it.");
create_exception!(lowlat, JoinError, LowlatError, "Joining the master failed.");
create_exception!(lowlat, PublishError, LowlatError, "A record or an order was not published.");
create_exception!(
    lowlat,
    NoCredit,
    PublishError,
    "A reader that must not lose records has no room: retry once it has read."
);
create_exception!(
    lowlat,
    Fenced,
    LowlatError,
    "The master dropped this process, and another may have replaced it: restart the program."
);
create_exception!(
    lowlat,
    Refused,
    JoinError,
    "The master refused the node after it had joined: what it asked for does not fit what came later."
);
create_exception!(
    lowlat,
    MasterGone,
    LowlatError,
    "The master died without stopping its nodes, and they stop with it."
);
create_exception!(
    lowlat,
    Forked,
    LowlatError,
    "The node belongs to the process that this one was forked from: join again in this process."
);
create_exception!(
    lowlat,
    BusyError,
    LowlatError,
    "Another thread is using the node or the journal, or td is changing its ledger."
);
create_exception!(lowlat, JournalError, LowlatError, "A recording cannot be read.");

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("LowlatError", py.get_type::<LowlatError>())?;
    module.add("JoinError", py.get_type::<JoinError>())?;
    module.add("PublishError", py.get_type::<PublishError>())?;
    module.add("NoCredit", py.get_type::<NoCredit>())?;
    module.add("Fenced", py.get_type::<Fenced>())?;
    module.add("Refused", py.get_type::<Refused>())?;
    module.add("MasterGone", py.get_type::<MasterGone>())?;
    module.add("Forked", py.get_type::<Forked>())?;
    module.add("BusyError", py.get_type::<BusyError>())?;
    module.add("JournalError", py.get_type::<JournalError>())
}

pub fn value(text: &dyn Display) -> PyErr {
    PyValueError::new_err(text.to_string())
}

pub fn of_publish(error: NodePublishError) -> PyErr {
    match error {
        NodePublishError::Refused(stream::PublishError::Fenced { .. }) => Fenced::new_err(error.to_string()),
        NodePublishError::Refused(stream::PublishError::NoCredit { .. }) => {
            NoCredit::new_err(error.to_string())
        }
        NodePublishError::Forked { .. } => Forked::new_err(error.to_string()),
        NodePublishError::NoStream => PublishError::new_err(
            "cannot publish: this node joined without a stream\nhint: pass writes=NAME to join_node",
        ),
        NodePublishError::Instrument { .. } | NodePublishError::Refused(_) => {
            PublishError::new_err(error.to_string())
        }
    }
}

pub fn of_ended(ended: &NodeEnded) -> PyErr {
    match ended {
        NodeEnded::Fenced => Fenced::new_err(ended.to_string()),
        NodeEnded::Refused { .. } => Refused::new_err(ended.to_string()),
        NodeEnded::MasterGone => MasterGone::new_err(ended.to_string()),
        NodeEnded::Forked { .. } => Forked::new_err(ended.to_string()),
    }
}
