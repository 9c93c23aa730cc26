//! What we do not know survives a rewrite, in place.

use super::{document, named, queued, sample, text_of};
use crate::core::pers_xfer::record::Status;
use crate::core::time::Epoch;
use crate::core::url::Origin;
use proptest::prelude::*;

#[test]
fn a_record_that_is_put_again_keeps_every_stranger() {
    let mut read = document(sample("future"));
    let image = named(&read, "image.iso");
    read.put(&image);
    assert_eq!(text_of(&read), sample("future"));
}

#[test]
fn a_changed_record_keeps_them_too() {
    let mut read = document(sample("future"));
    let mut image = named(&read, "image.iso");
    image.status = Status::Failed { code: -182, message: "gave up".to_owned() };
    image.mirrors.remove(0);
    image.dossier.part.total = None;
    read.put(&image);
    let rewritten = text_of(&read);
    for stranger in [
        "<priority>9</priority>\n    <name>",
        "<sticky/>",
        "<weight>5</weight>",
        "<download_url>ipfs://example/image.iso</download_url>",
        "\n    <xml_signature>\n0a1b2c3d4e5f\n.\n    </xml_signature>",
        "</id>\n        <omen>retry</omen>\n        <path>",
        "<speed>1048576</speed>\n            <served/>",
        "<held>20971520</held>\n                <segments>\n                    <segment>0 20971520</segment>",
        "<status>503</status>",
        "<teleport/>\n    </persxfer>\n    <!-- a remark by hand -->\n</file_info>",
        "<weather><wind from=\"north\">3</wind></weather>",
        "</file_info>\n<postscript/>\n</client_state>\n",
    ] {
        assert!(rewritten.contains(stranger), "{stranger} in\n{rewritten}");
    }
    assert_eq!(named(&document(&rewritten), "image.iso"), image);
}

#[test]
fn hosts_keep_theirs() {
    let mut read = document(sample("future"));
    let mut hosts = read.hosts().to_vec();
    hosts.insert(0, hosts[0].clone());
    hosts[0].key.origin = Origin::parse("http://new.example").expect("an origin");
    hosts[1].closed_until = None;
    hosts[1].not_before = Some(Epoch::from_secs(5));
    read.set_hosts(hosts.clone());
    assert!(read.is_changed());
    let rewritten = text_of(&read);
    assert!(rewritten.contains("<failures>3</failures>\n        <breaker kind=\"half-open\">2</breaker>"));
    assert!(rewritten.contains("<compatible_since>0.1</compatible_since>") && rewritten.contains("<seed>11</seed>"));
    assert_eq!(rewritten.matches("breaker").count(), 2);
    assert_eq!(document(&rewritten).hosts(), hosts);
}

#[test]
fn two_directions_of_one_host_keep_what_is_theirs() {
    let host = |direction: &str, stranger: &str| {
        format!(
            "<host><origin>http://h.example</origin><direction>{direction}</direction><failures>3</failures>{stranger}</host>"
        )
    };
    let hosts = host("download", "<zza/>") + &host("upload", "<zzb/>");
    let text = text_of(&document(&format!("<client_state><persxfer>{hosts}</persxfer></client_state>")));
    let (first, second) = text.split_once("</host>").expect("two hosts");
    assert_eq!((first.matches("<zza/>").count(), first.matches("<zzb/>").count()), (1, 0), "{text}");
    assert_eq!((second.matches("<zza/>").count(), second.matches("<zzb/>").count()), (0, 1), "{text}");
}

#[test]
fn a_download_that_has_uploads_urls_only_stays_one() {
    let mut read = document(
        "<client_state><file><name>x</name><upload_url>http://u.example/</upload_url>\
         <persistent_file_xfer><is_upload>0</is_upload></persistent_file_xfer></file></client_state>",
    );
    let x = named(&read, "x");
    read.put(&x);
    assert_eq!(named(&document(&text_of(&read)), "x"), x);
}

#[test]
fn urls_of_the_other_direction_stay() {
    let text = "<client_state><file_info><name>x</name><download_url>http://d.example/</download_url>\
                <upload_url>http://u.example/</upload_url></file_info></client_state>";
    let mut read = document(text);
    let x = named(&read, "x");
    read.put(&x);
    assert!(text_of(&read).contains("<upload_url>http://u.example/</upload_url>"));
}

/// Elements that nobody knows, with all that XML has.
fn stranger() -> impl Strategy<Value = String> {
    prop_oneof![
        ("[a-z]{1,5}", "[ a-z0-9]{0,8}").prop_map(|(name, text)| format!("<zz{name}>{text}</zz{name}>")),
        ("[a-z]{1,5}", "[a-z> /]{0,5}").prop_map(|(name, value)| format!("<zz{name} k=\"{value}\"/>")),
        Just("<zza><persxfer><id>x</id></persxfer><held>y</held></zza>".to_owned()),
        Just("<!-- <name> & so on -->".to_owned()),
        Just("<zzb><![CDATA[ ]] <name> ]]></zzb>".to_owned()),
        Just("<?zz do?>".to_owned()),
    ]
}

proptest! {
    /// A stranger before any line of a file stays before that line, whichever record is put, and however often.
    #[test]
    fn strangers_survive_anywhere(stranger in stranger(), line in 1_usize..1000, put in 0_usize..3) {
        let lines: Vec<&str> = sample("waiting").lines().collect();
        // Anywhere but inside the synthetic project, before any line but the first.
        let at = 1 + line % (lines.len() - 1);
        let text = [&lines[..at], &[stranger.as_str()], &lines[at..]].concat().join("\n");
        let mut read = document(&text);
        let records: Vec<_> = read.transfers().collect();
        match records.get(put) {
            Some(record) => read.put(record),
            None => read.put(&queued(7, "new")),
        }
        let once = text_of(&read);
        let trimmed = |s: &str| s.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
        let expected = if put < 2 { text } else { with_new_record(&text, &once) };
        prop_assert_eq!(without_header(&trimmed(&once)), without_header(&trimmed(&expected)));
        let mut again = document(&once);
        again.put(&records[0]);
        prop_assert_eq!(trimmed(&text_of(&again)), trimmed(&once));
    }
}

/// `text` with what `rewritten` has for the new record, which stands behind the last one.
fn with_new_record(text: &str, rewritten: &str) -> String {
    let start = rewritten.find("<file_info>\n    <name>new</name>").expect("the new record");
    let end = start + rewritten[start..].find("</file_info>").expect("its end") + "</file_info>".len();
    let last = text.rfind("</file_info>").expect("a record") + "</file_info>".len();
    format!("{}\n{}{}", &text[..last], &rewritten[start..end], &text[last..])
}

/// Our header is always written first; what stood before it is then behind it. The comparison leaves it out.
fn without_header(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let (Some(start), Some(end)) =
        (lines.iter().position(|l| l == "<persxfer>"), lines.iter().position(|l| l == "</persxfer>"))
    {
        lines.drain(start..=end);
    }
    lines
}
