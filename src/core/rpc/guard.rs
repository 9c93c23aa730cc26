//! The guard of a connection: who may ask what (boinc.md 4.1).
//!
//! The one who asks proves the password without saying it: `auth1` gets a word that was never used before, `auth2` brings the
//! MD5 of that word and the password. MD5 is BOINC's; what it guards is a port that only this machine reaches.

use md5::{Digest, Md5};

use crate::core::rpc::reply::Reply;
use crate::core::rpc::request::Request;

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is to be answered.
    Pass,
    /// This is the answer.
    Answer(Reply),
    /// The connection ends.
    Close,
}

/// What is known of the one at the other end of a connection.
#[derive(Clone)]
pub struct Guard {
    password: String,
    nonce: String,
    standing: Standing,
    asked_for_nonce: bool,
    sent_hash: bool,
    refused: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The password was not proven.
    Stranger,
    /// It was, or there is none.
    Trusted,
}

impl Guard {
    /// Of a new connection. An empty password is none. `nonce` is random, for this connection alone, without markup.
    pub fn new(password: &str, nonce: String) -> Self {
        let standing = if password.is_empty() { Standing::Trusted } else { Standing::Stranger };
        let password = password.to_owned();
        Self { password, nonce, standing, asked_for_nonce: false, sent_hash: false, refused: false }
    }

    /// Has the one at the other end proven the password? Where there is none, nobody has.
    pub fn has_proven(&self) -> bool {
        self.standing == Standing::Trusted && !self.password.is_empty()
    }

    /// May this be asked?
    pub fn admit(&mut self, request: &Request) -> Verdict {
        match request {
            Request::Auth1 => self.challenge(),
            Request::Auth2 { hash } => self.judge(hash),
            _ if self.standing == Standing::Trusted || request.is_open_to_all() => Verdict::Pass,
            _ => self.refuse(),
        }
    }

    /// A second wish for it, before the password was proven, is a guesser's.
    fn challenge(&mut self) -> Verdict {
        if std::mem::replace(&mut self.asked_for_nonce, true) && self.standing == Standing::Stranger {
            return Verdict::Close;
        }
        Verdict::Answer(Reply::nonce(&self.nonce))
    }

    fn judge(&mut self, hash: &str) -> Verdict {
        if self.standing == Standing::Trusted {
            return Verdict::Answer(Reply::authorized());
        }
        if std::mem::replace(&mut self.sent_hash, true) {
            return Verdict::Close;
        }
        if !self.asked_for_nonce || !is_same(hash, &self.right_hash()) {
            return self.refuse();
        }
        self.standing = Standing::Trusted;
        Verdict::Answer(Reply::authorized())
    }

    fn refuse(&mut self) -> Verdict {
        if std::mem::replace(&mut self.refused, true) {
            return Verdict::Close;
        }
        Verdict::Answer(Reply::unauthorized())
    }

    fn right_hash(&self) -> String {
        hex::encode(Md5::new().chain_update(&self.nonce).chain_update(&self.password).finalize())
    }
}

/// The time this takes tells nothing of where they differ.
fn is_same(said: &str, right: &str) -> bool {
    let said = said.to_ascii_lowercase();
    said.len() == right.len() && said.bytes().zip(right.bytes()).fold(0, |odd, (a, b)| odd | (a ^ b)) == 0
}

/// The password that stands in a `gui_rpc_auth.cfg`: its first line, without blanks at the ends; empty for none.
pub fn password_of(file: &str) -> &str {
    file.lines().next().unwrap_or_default().trim()
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}
