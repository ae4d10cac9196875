//! A store inside the process.
