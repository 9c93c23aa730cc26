//! Tests of uploads: tables of single answers, and whole uploads to servers in memory over lines that break.

mod believed;
mod boinc;
mod boinc_server;
mod cuts;
mod dav_server;
mod ietf;
mod ietf_server;
mod machine;
mod put;
mod s3;
mod s3_server;
mod s3_sweep;
mod s3_urls;
mod sim;
mod table;
mod tus;
mod tus_server;
