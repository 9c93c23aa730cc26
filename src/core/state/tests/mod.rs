//! Tests of the state file as bytes: the samples in `state/`, records that survive, strangers that survive, damage.

mod damaged;
mod history;
mod pieces;
mod records;
mod samples;
mod strangers;

use super::Document;
use crate::core::pers_xfer::record::{Record, XferId};

/// A sample of `state/`.
fn sample(name: &str) -> &'static str {
    match name {
        "fresh" => include_str!("../../../../state/fresh.xml"),
        "waiting" => include_str!("../../../../state/waiting.xml"),
        "given_up" => include_str!("../../../../state/given_up.xml"),
        "damaged" => include_str!("../../../../state/damaged.xml"),
        "boinc_client" => include_str!("../../../../state/boinc_client.xml"),
        "future" => include_str!("../../../../state/future.xml"),
        _ => panic!("no sample {name}"),
    }
}

fn document(text: &str) -> Document {
    Document::parse(text.as_bytes()).expect("a sound file")
}

fn text_of(document: &Document) -> String {
    String::from_utf8(document.to_bytes()).expect("UTF-8")
}

fn named(document: &Document, name: &str) -> Record {
    document.transfers().find(|r| r.name == name).expect("a transfer of that name")
}

/// A small record that was never started.
fn queued(id: u64, name: &str) -> Record {
    let text = format!(
        "<client_state><file_info><name>{name}</name><download_url>http://h.example/{name}</download_url>\
         <persxfer><id>{id:016x}</id><path>/srv/{name}</path></persxfer></file_info></client_state>"
    );
    document(&text).get(XferId(id)).expect("there")
}
