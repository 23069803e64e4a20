//! Complete plans on captured hosts, and each kind of change alone.

mod changed_hosts;
mod dirty;
mod fakes;
mod files;
mod host;
mod hostile;
mod later_boot;
mod values;
mod whole_plans;
