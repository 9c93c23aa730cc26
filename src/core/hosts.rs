//! Hosts: what is known of each host and direction.
