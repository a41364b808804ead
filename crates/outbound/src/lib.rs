//! How calls go out: the client behind the command line.
