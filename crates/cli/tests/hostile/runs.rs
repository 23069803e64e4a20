//! Running pipelines: prepared run folders, greedy and hostile nodes.

#[path = "runs/folders.rs"]
mod folders;
#[path = "runs/numbers.rs"]
mod numbers;
#[path = "runs/pipeline.rs"]
mod pipeline;
