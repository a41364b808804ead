//! The chancery command.

fn main() {}
