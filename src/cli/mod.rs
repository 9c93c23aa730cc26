//! The face: what was typed, what is needed, one file a command; bars, report, exit status.
