//! Running pipelines: prepared run folders, greedy and hostile nodes.
