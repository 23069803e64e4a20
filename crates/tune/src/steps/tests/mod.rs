//! Whole plans on captured hosts, and each kind of thing by itself.

mod changed_hosts;
mod dirty;
mod fakes;
mod files;
mod host;
mod hostile;
mod later_boot;
mod values;
mod whole_plans;
