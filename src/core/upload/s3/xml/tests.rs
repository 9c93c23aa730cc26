//! Answers as stores send them, and what is no answer.

use super::*;

const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListPartsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Bucket>b</Bucket><Key>k &amp; l</Key><UploadId>id</UploadId>
  <Initiator><ID>1</ID><DisplayName>n</DisplayName></Initiator>
  <PartNumberMarker>0</PartNumberMarker><NextPartNumberMarker>2</NextPartNumberMarker>
  <MaxParts>2</MaxParts><IsTruncated>true</IsTruncated>
  <Part><PartNumber>1</PartNumber><LastModified>x</LastModified><ETag>"abc"</ETag><Size>10</Size></Part>
  <Part><PartNumber>2</PartNumber><ETag>&quot;def&quot;</ETag><Size>11</Size></Part>
</ListPartsResult>"#;

fn part(number: u32, size: u64, etag: &str) -> Part {
    Part { number, size: Length(size), etag: etag.to_owned() }
}

#[test]
fn a_page_of_parts() {
    let root = Element::read(PAGE.as_bytes()).expect("XML");
    let parts = vec![part(1, 10, "\"abc\""), part(2, 11, "\"def\"")];
    assert_eq!(root.page(), Some(Page { parts: parts.clone(), next: Some(2) }));
    assert_eq!(root.value("Key"), Some("k & l"));
    let last = PAGE.replace(">true<", ">false<");
    assert_eq!(Element::read(last.as_bytes()).and_then(|r| r.page()), Some(Page { parts, next: None }));
    let bare = "<ListPartsResult><Part><PartNumber>3</PartNumber><Size>1</Size></Part></ListPartsResult>";
    let want = Page { parts: vec![part(3, 1, "")], next: None };
    assert_eq!(Element::read(bare.as_bytes()).and_then(|r| r.page()), Some(want));
    let other = PAGE.replace("ListPartsResult", "ListPartsResponse");
    assert!(Element::read(other.as_bytes()).and_then(|r| r.page()).is_some(), "as moto calls it");
    for broken in [
        PAGE.replace("ListPartsResult", "ListPartsQuery"),
        PAGE.replace("<Size>11", "<Size>-1"),
        PAGE.replace("PartNumber>2", "PartNumber>x"),
    ] {
        assert_eq!(Element::read(broken.as_bytes()).and_then(|r| r.page()), None);
    }
}

#[test]
fn errors_and_what_they_say() {
    let fault = |text: &str| Element::read(text.as_bytes()).and_then(|root| root.fault());
    let text = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region\u{1b}[2J is wrong</Message>\
                <Region>eu-west-1</Region></Error>";
    let want = Fault {
        word: "AuthorizationHeaderMalformed".to_owned(),
        message: "the region\\u{1b}[2J is wrong".to_owned(),
        region: Some("eu-west-1".to_owned()),
    };
    assert_eq!(fault(text), Some(want.clone()));
    assert_eq!(fault(&format!("   \n\n<?xml version=\"1.0\"?>\n{text}")), Some(want.clone()), "blanks keep it alive");
    assert_eq!(fault(&format!("<ErrorResponse>{text}</ErrorResponse>")), Some(want));
    assert_eq!(fault("<Error><Code>Slow\nDown</Code></Error>").map(|f| f.word).as_deref(), Some("SlowDown"));
    for none in ["", "<html><body>Error</body></html>", "<Error></Error>", "Error", "<Error><Code>A</Code>"] {
        assert_eq!(fault(none), None, "{none}");
    }
}

#[test]
fn limits() {
    let deep = format!("{}{}", "<a>".repeat(9), "</a>".repeat(9));
    let long = format!("<Error><Code>{}</Code></Error>", "x".repeat(5_000));
    let many = format!("<a>{}</a>", "<b/>".repeat(40_001));
    let doctype = "<!DOCTYPE x [<!ENTITY a \"b\">]><Error><Code>&a;</Code></Error>";
    let entity = "<Error><Code>&other;</Code></Error>";
    for bad in [&deep, &long, &many, doctype, entity, "<a></b>", "<a/><b/>", "\u{fffd}", "<a>"] {
        assert_eq!(Element::read(bad.as_bytes()), None, "{}", &bad[..bad.len().min(40)]);
    }
    assert_eq!(Element::read(b"<a>\xff</a>"), None);
    let blanks = format!("<Error>{}<Code>A</Code></Error>", " ".repeat(100_000));
    assert!(Element::read(blanks.as_bytes()).is_some());
}

#[test]
fn the_closing_body_is_read_back() {
    let text = closing(&[part(1, 5, "\"a&<b\""), part(2, 5, "c")]);
    let root = Element::read(text.as_bytes()).expect("XML");
    assert!(root.is("CompleteMultipartUpload"));
    let tags: Vec<_> = root.children.iter().map(|p| p.value("ETag").expect("a tag")).collect();
    assert_eq!(tags, ["\"a&<b\"", "c"]);
}

#[test]
fn tags_that_can_be_kept() {
    assert_eq!(tag("\"d41d8\"").as_deref(), Some("\"d41d8\""));
    for bad in ["", "a b", "a\nb", "ä", &"x".repeat(257)] {
        assert_eq!(tag(bad), None, "{bad}");
    }
}
