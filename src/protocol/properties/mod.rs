//! What holds whatever happens: for one protocol under arbitrary answers, and for a few against one store.

mod fleet;
mod sequences;
