//! PEM files of certificates and keys under bytes that nobody wrote. Reading them is the work of libraries; what is looked at
//! is what we make of it: whole or nothing, and no hang.

use super::*;
use crate::fuzz::{self, Target, grows_evenly, kind};

const PEM: Target = Target {
    name: "pem",
    run: pem,
    words: &[
        "-----BEGIN CERTIFICATE-----\n",
        "-----END CERTIFICATE-----\n",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----\n",
        "-----BEGIN EC PRIVATE KEY-----\n",
        "-----END EC PRIVATE KEY-----\n",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n",
        "-----",
        "BEGIN ",
        "END ",
        "MIIB",
        "AAAA",
        "==",
        "\r\n",
        "\n\n",
        "Proc-Type: 4,ENCRYPTED\n",
        "\u{feff}",
    ],
    runs: 3_000,
    grows_from: 4 << 10,
    frames: &[("", ""), ("-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n")],
};

#[test]
fn pem_files_that_nobody_wrote() {
    fuzz::fuzz(&PEM);
    grows_evenly(&PEM);
}

fn pem(data: &[u8]) -> u32 {
    let found = certificates_in(data);
    let mut store = RootCertStore::empty();
    let (used, refused) = store.add_parsable_certificates(found.iter().cloned());
    assert_eq!((used + refused, store.len()), (found.len(), used));
    assert!(found.iter().all(|certificate| !certificate.is_empty() && certificate.len() <= data.len()));
    let key = key_in(data);
    assert!(key.as_ref().is_none_or(|key| key.secret_der().len() <= data.len()));
    kind(&[found.len(), used, usize::from(key.is_some())])
}
