//! How peers' errors are read back.
