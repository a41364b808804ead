//! Decisions as plain functions: task states and how events fold into a task.
