//! lowlat as its users run it. `LOWLAT_BINARY=PATH` tests another binary than the one that cargo built.

mod common;
#[path = "../../pipeline/trade/tests/runtime/master_thread.rs"]
#[allow(dead_code, clippy::unnecessary_wraps, reason = "other tests use the rest")]
mod master_thread;
#[path = "../../tune/redfish/tests/service/mod.rs"]
mod service;

mod assess;
mod backtest;
mod bad_input;
mod bios;
mod cache;
mod cache_partition;
mod checked;
mod completions;
mod docs;
mod documents;
mod export;
mod fixtures;
mod handbook;
mod hostile;
mod import;
mod jitter;
mod journal;
mod journal_record;
mod labels;
mod lang;
mod net;
mod onload;
mod packages;
mod pipeline_kills;
mod pipeline_run;
mod pipeline_service;
mod plan;
mod prove;
mod redfish;
mod report;
mod role;
mod run;
mod transcripts;
mod truth;
mod tune;
mod tutorial;
mod verify;
mod watch;
mod wire;
mod workload;
