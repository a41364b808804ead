//! How calls come in: listeners, one file per transport, context, limits, admin API.
