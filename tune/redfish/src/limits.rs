//! Limits on a service's use of resources. No service is trusted to stop.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time for one request and its answer.
    pub request_time: Duration,
    /// Time for all requests together.
    pub total_time: Duration,
    pub requests_max: usize,
    /// Bytes of one answer, uncompressed.
    pub answer_bytes_max: usize,
    pub members_max: usize,
    pub redirects_max: usize,
    /// Time to wait for a task of the service.
    pub task_time: Duration,
    /// Time within which changed settings must appear in the settings resource.
    pub read_back_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_time: Duration::from_secs(30),
            total_time: Duration::from_secs(600),
            requests_max: 200,
            answer_bytes_max: lowlat_bios::BYTES_MAX,
            members_max: 512,
            redirects_max: 3,
            task_time: Duration::from_secs(60),
            read_back_time: Duration::from_secs(5),
        }
    }
}
