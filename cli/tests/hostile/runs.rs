//! Running pipelines: prepared run folders, greedy and hostile nodes.

#[path = "runs/folders.rs"]
mod folders;
#[path = "runs/greedy.rs"]
mod greedy;
#[path = "runs/numbers.rs"]
mod numbers;
#[path = "runs/pipeline.rs"]
mod pipeline;
