//! How much a service may take: none of it is trusted to end by itself.

use std::time::Duration;

/// Bounds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time of one request with its answer.
    pub request_time: Duration,
    /// Time of all requests together.
    pub total_time: Duration,
    /// Requests in all.
    pub requests_max: usize,
    /// Bytes of one answer, unpacked.
    pub answer_bytes_max: usize,
    /// Members that are looked at in one collection.
    pub members_max: usize,
    /// Redirects of one request.
    pub redirects_max: usize,
    /// Time that a task of the service is waited for.
    pub task_time: Duration,
    /// Time in which sent settings must show in the settings resource.
    pub read_back_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_time: Duration::from_secs(30),
            total_time: Duration::from_secs(600),
            requests_max: 200,
            answer_bytes_max: lowlat_model::bios::BYTES_MAX,
            members_max: 512,
            redirects_max: 3,
            task_time: Duration::from_secs(60),
            read_back_time: Duration::from_secs(5),
        }
    }
}
