//! state_file
