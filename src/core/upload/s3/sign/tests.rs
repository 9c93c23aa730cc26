//! The signature against published examples: RFC 4231, the test suite of Signature Version 4, the manual of S3.

use super::*;
use crate::core::upload::ask::{Body, Method};

fn credentials(secret: &str) -> Credentials {
    Credentials::new("AKIDEXAMPLE", secret, None)
}

/// 24 May 2013, midnight.
const MANUAL: Epoch = Epoch::from_secs(1_369_353_600);

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[track_caller]
fn signed(method: &str, path: &str, query: &str, fields: &[(&str, &str)], payload: &str) -> String {
    let credentials = credentials("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    let signing = Signing { credentials: &credentials, region: "us-east-1", service: "s3", at: MANUAL };
    let mut fields: Vec<_> = fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    fields.push(("Host".to_owned(), "examplebucket.s3.amazonaws.com".to_owned()));
    if payload != UNSIGNED {
        fields.push(("x-amz-content-sha256".to_owned(), payload.to_owned()));
        fields.push(("x-amz-date".to_owned(), "20130524T000000Z".to_owned()));
    }
    signing.signature(&Request { method, path, query, fields, payload }).expect("a date")
}

#[test]
fn hmac_of_rfc_4231() {
    let of = |key: &[u8], message: &[u8]| hex::encode(hmac(key, message));
    let first = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
    assert_eq!(of(&[0x0b; 20], b"Hi There"), first);
    let second = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(of(b"Jefe", b"what do ya want for nothing?"), second);
    let sixth = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
    assert_eq!(of(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"), sixth);
}

#[test]
fn get_vanilla_of_the_test_suite() {
    let credentials = credentials("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
    let at = Epoch::from_secs(1_440_938_160);
    let signing = Signing { credentials: &credentials, region: "us-east-1", service: "service", at };
    let fields = [("Host", "example.amazonaws.com"), ("X-Amz-Date", "20150830T123600Z")];
    let fields: Vec<_> = fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let request = Request { method: "GET", path: "/", query: "", fields, payload: EMPTY };
    let canonical = "GET\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n";
    assert_eq!(request.canonical(), format!("{canonical}{EMPTY}"));
    let signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    assert_eq!(signing.signature(&request).as_deref(), Some(signature));
}

#[test]
fn the_examples_of_the_manual() {
    let get = signed("GET", "/test.txt", "", &[("Range", "bytes=0-9")], EMPTY);
    assert_eq!(get, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    let welcome = sha256_hex("Welcome to Amazon S3.");
    let fields = [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
    for path in ["/test%24file.text", "/test$file.text"] {
        let put = signed("PUT", path, "", &fields, &welcome);
        assert_eq!(put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    }
    let lifecycle = signed("GET", "/", "lifecycle", &[], EMPTY);
    assert_eq!(lifecycle, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    let list = signed("GET", "/", "prefix=J&max-keys=2", &[], EMPTY);
    assert_eq!(list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

#[test]
fn the_signed_url_of_the_manual() {
    let query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3\
                 %2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host";
    let signature = signed("GET", "/test.txt", query, &[], UNSIGNED);
    assert_eq!(signature, "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

/// Computed by botocore 1.43 for the same request.
#[test]
fn a_part_as_another_client_signs_it() {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    let credentials = Credentials::new("AKIDEXAMPLE", secret, Some("token/with+signs=="));
    let at = Epoch::from_micros(1_440_938_160_999_999);
    let signing = Signing { credentials: &credentials, region: "eu-west-1", service: "s3", at };
    let url = "http://127.0.0.1:9000/bucket/dir/a%20b%2Bc%28%C3%A4%29~.bin?partNumber=7&uploadId=id%2Fwith%20%2B%3D";
    let ask = Ask::new(Method::Put, &MirrorUrl::parse(url).expect("a URL"))
        .with("content-md5", "Rqv5ipsmBi8yTCW7xdz0pQ==")
        .with("content-type", "application/octet-stream")
        .carrying(Body::Bytes(b"part".to_vec()));
    let ask = signing.sign(ask, &sha256_hex("part")).expect("a date");
    assert_eq!(ask.field("x-amz-date"), Some("20150830T123600Z"));
    assert_eq!(ask.field("x-amz-security-token"), Some("token/with+signs=="));
    let proof = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/s3/aws4_request, \
                 SignedHeaders=content-md5;content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, \
                 Signature=669f9474291b7d9ad9c879b88fa784f65031e8fda95640c6e2e19463d872a0b5";
    assert_eq!(ask.field("authorization"), Some(proof));
    let shown = format!("{ask:?} {credentials:?}");
    assert!(!shown.contains("wJalr") && !shown.contains("669f") && !shown.contains("token/with"), "{shown}");
}

#[test]
fn queries_and_paths_in_their_canonical_form() {
    assert_eq!(canonical_query("b=2&a=1&a=0&uploads&c=%7e%2b+"), "a=0&a=1&b=2&c=~%2B%2B&uploads=");
    assert_eq!(canonical_path("/a//b%2fc/$"), "/a//b/c/%24");
    assert_eq!((canonical_path(""), encoded("a/b ü")), ("/".to_owned(), "a%2Fb%20%C3%BC".to_owned()));
}

#[test]
fn a_moment_without_a_date_signs_nothing() {
    assert_eq!(stamp(Epoch::from_micros(i64::MAX)), None);
    assert_eq!(stamp(Epoch::ZERO).as_deref(), Some("19700101T000000Z"));
}
