//! The bytes that `boinccmd` 7.20.5 sends and reads (boinc.md 4.2 and 4.3), and what comes from others.

use proptest::prelude::*;

use super::*;
use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::prefs::Mode;
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};
use crate::core::url::MirrorUrl;

fn asked(between: &str) -> Request {
    Request::parse(format!("<boinc_gui_rpc_request>\n{between}</boinc_gui_rpc_request>\n").as_bytes())
}

fn which(url: &str, name: &str) -> Which {
    Which { project_url: url.into(), filename: name.into() }
}

fn text_of(reply: &Reply) -> String {
    String::from_utf8(reply.to_bytes()).expect("text")
}

#[test]
fn what_boinccmd_sends_is_read() {
    let (url, name) = ("https://persxfer.invalid/", "a & b <1>.iso");
    let of = |op: &str| {
        asked(&format!("<{op}>\n   <project_url>{url}</project_url>\n   <filename>{name}</filename>\n</{op}>\n"))
    };
    assert_eq!(of("retry_file_transfer"), Request::RetryFileTransfer(which(url, name)));
    assert_eq!(of("abort_file_transfer"), Request::AbortFileTransfer(which(url, name)));
    let mode = |word: &str| {
        asked(&format!("<set_network_mode>\n<{word}/>\n  <duration>60.000000</duration>\n</set_network_mode>\n"))
    };
    let set = |mode, secs| Request::SetNetworkMode { mode, duration: Delay::from_secs(secs) };
    assert_eq!(mode("never"), set(Some(ModeWord::Set(Mode::Never)), 60));
    assert_eq!(mode("always"), set(Some(ModeWord::Set(Mode::Always)), 60));
    assert_eq!(mode("restore"), set(Some(ModeWord::Restore), 60));
    assert_eq!(mode("sometimes"), set(None, 60));
    assert_eq!(asked("<auth1/>\n"), Request::Auth1);
    let hash = "0123456789abcdef0123456789abcdef";
    assert_eq!(
        asked(&format!("<auth2>\n<nonce_hash>{hash}</nonce_hash>\n</auth2>\n")),
        Request::Auth2 { hash: hash.into() }
    );
    let versions = "<exchange_versions>\n   <major>7</major>\n   <minor>20</minor>\n   <release>5</release>\n   \
                    <name>boinccmd 7.20.5</name>\n</exchange_versions>\n";
    assert_eq!(asked(versions), Request::ExchangeVersions);
    assert_eq!(asked("<get_file_transfers/>\n"), Request::GetFileTransfers);
    assert_eq!(asked("<get_messages>\n  <seqno>0</seqno>\n</get_messages>\n"), Request::GetNothing { list: "msgs" });
}

#[test]
fn requests_are_read_as_leniently_as_boinc_does() {
    let never = Request::SetNetworkMode { mode: Some(ModeWord::Set(Mode::Never)), duration: Delay::ZERO };
    for text in [
        "<set_network_mode><never/><duration>0</duration></set_network_mode>",
        "<set_network_mode why=\"so\">\r\n <!-- <always/> --> <never /> </set_network_mode>",
        "<set_network_mode><always/><never/><duration>x</duration><odd><thing>1</thing></odd></set_network_mode>",
        "<set_network_mode><never></never><duration>-5</duration>",
        "<?xml version=\"1.0\"?><set_network_mode><never/><duration>inf</duration>",
    ] {
        assert_eq!(asked(text), never, "{text}");
    }
    assert_eq!(Request::parse(b"<get_state/>"), Request::GetState, "without the tags around it");
    assert_eq!(asked("<abort_file_transfer/>"), Request::AbortFileTransfer(Which::default()));
    assert_eq!(asked("<abort_file_transfer><filename>a"), Request::AbortFileTransfer(Which::default()));
}

#[test]
fn what_nobody_knows_is_told_back_as_boinc_does() {
    for (text, told) in [
        ("<frobnicate/>", "frobnicate/"),
        ("<frobnicate></frobnicate>", "frobnicate"),
        ("<a&b\u{3}\"/>", "ab/"),
        ("", ""),
        ("no tag at all", ""),
        ("<", ""),
    ] {
        assert_eq!(asked(text), Request::Unknown(told.into()), "{text}");
    }
    let reply = "<boinc_gui_rpc_reply>\n<error>unrecognized op: frobnicate/</error>\n</boinc_gui_rpc_reply>\n\u{3}";
    assert_eq!(text_of(&Reply::unrecognized("frobnicate/")), reply);
}

#[test]
fn the_password_is_proven_by_a_hash() {
    // The MD5 of "abc" and "d", by md5sum.
    let hash = |text: &str| Request::Auth2 { hash: text.into() };
    let right = hash("e2fc714c4727ee9395f324cd2e7f331f");
    let guard = || Guard::new("d", "abc".into());
    let mut one = guard();
    assert_eq!(one.admit(&Request::GetFileTransfers), Verdict::Pass);
    assert_eq!(one.admit(&Request::Auth1), Verdict::Answer(Reply("<nonce>abc</nonce>\n".into())));
    assert_eq!(one.admit(&right), Verdict::Answer(Reply("<authorized/>\n".into())));
    assert_eq!(one.admit(&Request::Quit), Verdict::Pass);
    assert_eq!(one.admit(&Request::Unknown("x/".into())), Verdict::Pass);

    let unauthorized = || Verdict::Answer(Reply("<unauthorized/>\n".into()));
    let mut two = guard();
    assert_eq!(two.admit(&Request::Quit), unauthorized());
    assert_eq!(two.admit(&Request::Quit), Verdict::Close, "the second time");
    let mut three = guard();
    assert_eq!(three.admit(&right), unauthorized(), "nobody asked for the word");
    let mut four = guard();
    assert!(matches!(four.admit(&Request::Auth1), Verdict::Answer(_)));
    assert_eq!(four.admit(&hash("e2fc714c4727ee9395f324cd2e7f331e")), unauthorized());
    assert_eq!(four.admit(&Request::GetState), Verdict::Pass, "what all may ask");
    assert_eq!(four.admit(&right), Verdict::Close, "no second guess");
    let mut five = guard();
    assert!(matches!(five.admit(&Request::Auth1), Verdict::Answer(_)));
    assert_eq!(five.admit(&Request::Auth1), Verdict::Close);
}

#[test]
fn an_empty_password_is_none() {
    let mut guard = Guard::new(password_of("  \nd\n"), "abc".into());
    assert_eq!(guard.admit(&Request::Quit), Verdict::Pass);
    assert!(matches!(guard.admit(&Request::Auth1), Verdict::Answer(_)));
    assert!(matches!(guard.admit(&Request::Auth2 { hash: String::new() }), Verdict::Answer(_)));
    assert_eq!(password_of(" d \r\nx"), "d");
    assert_eq!(format!("{:?}", Guard::new("secret", "n".into())), "Guard { .. }");
}

#[test]
fn the_project_is_found_as_boinc_compares() {
    for url in ["https://persxfer.invalid/", "http://www.PersXfer.invalid", " persxfer.invalid// "] {
        assert!(is_our_project(url), "{url}");
    }
    for url in ["", "https://persxfer.invalid/x", "https://alpha.example/boinc/"] {
        assert!(!is_our_project(url), "{url}");
    }
}

fn record() -> Record {
    let url = MirrorUrl::parse("http://h.example/f?token=s3cret").expect("a URL");
    let mut record = Record::download(XferId(1), "a <b> & c\n.iso".into(), &[url]);
    record.nbytes = Some(Length(4_000_000));
    record.num_retries = 2;
    record.first_request_time = Some(Epoch::from_micros(1_767_218_400_250_000));
    record.next_request_time = Some(Epoch::from_secs(1_767_218_500));
    record
}

#[test]
fn transfers_stand_in_boincs_elements_one_a_line() {
    let record = record();
    let session = Session {
        url: "http://h.example/f?token=***".into(),
        from: Length(1_000_000),
        at: Length(3_000_000),
        lasts: Delay::from_secs(4),
    };
    let held = Length(3_000_000);
    let running = FileTransfer { record: &record, held, session: Some(session), backoff: Delay::ZERO };
    let waiting = FileTransfer { record: &record, held, session: None, backoff: Delay::from_secs(823) };
    let reply = file_transfers([running, waiting], Epoch::from_secs(1_767_218_450));
    insta::assert_snapshot!(reply.0, @r##"
    <file_transfers>
    <file_transfer>
        <project_url>https://persxfer.invalid/</project_url>
        <project_name>persxfer</project_name>
        <name>a &lt;b&gt; &amp; c_.iso</name>
        <nbytes>4000000.000000</nbytes>
        <max_nbytes>0.000000</max_nbytes>
        <status>0</status>
        <persistent_file_xfer>
            <num_retries>2</num_retries>
            <first_request_time>1767218400.250000</first_request_time>
            <next_request_time>1767218500.000000</next_request_time>
            <time_so_far>4.000000</time_so_far>
            <last_bytes_xferred>3000000.000000</last_bytes_xferred>
            <is_upload>0</is_upload>
        </persistent_file_xfer>
        <file_xfer>
            <estimated_xfer_time_remaining>2.000000</estimated_xfer_time_remaining>
            <bytes_xferred>3000000.000000</bytes_xferred>
            <file_offset>1000000.000000</file_offset>
            <xfer_speed>500000.000000</xfer_speed>
            <url>http://h.example/f?token=***</url>
        </file_xfer>
    </file_transfer>
    <file_transfer>
        <project_url>https://persxfer.invalid/</project_url>
        <project_name>persxfer</project_name>
        <name>a &lt;b&gt; &amp; c_.iso</name>
        <nbytes>4000000.000000</nbytes>
        <max_nbytes>0.000000</max_nbytes>
        <status>0</status>
        <persistent_file_xfer>
            <num_retries>2</num_retries>
            <first_request_time>1767218400.250000</first_request_time>
            <next_request_time>1767218500.000000</next_request_time>
            <time_so_far>0.000000</time_so_far>
            <last_bytes_xferred>3000000.000000</last_bytes_xferred>
            <is_upload>0</is_upload>
        </persistent_file_xfer>
        <project_backoff>823.000000</project_backoff>
    </file_transfer>
    </file_transfers>
    "##);
}

#[test]
fn what_has_not_begun_is_due_now() {
    let url = MirrorUrl::parse("http://h.example/f").expect("a URL");
    let record = Record::upload(XferId(1), "f".into(), "/f".into(), &[url]);
    let fresh = FileTransfer { record: &record, held: Length::ZERO, session: None, backoff: Delay::ZERO };
    let text = text_of(&file_transfers([fresh], Epoch::from_secs(1_767_218_450)));
    assert!(text.contains("        <first_request_time>1767218450.000000</first_request_time>\n"), "{text}");
    assert!(text.contains("        <is_upload>1</is_upload>\n") && text.contains("    <status>1</status>\n"), "{text}");
}

#[test]
fn short_answers_are_boincs() {
    let status = CcStatus {
        mode: Mode::Never,
        permanent: Mode::Auto,
        left: Delay::from_millis(59_500),
        suspended: Some(Suspension::UserRequest),
    };
    let answers = [
        Reply::success(),
        Reply::versions(),
        Reply::cc_status(&status),
        Reply::state(),
        Reply::projects(),
        Reply::host_info(),
        Reply::message_count(),
        Reply::empty("msgs"),
    ];
    let all: Vec<_> = answers.iter().map(|reply| reply.0.as_str()).collect();
    insta::assert_snapshot!(all.join("\n"), @r##"
    <success/>

    <server_version>
        <major>7</major>
        <minor>20</minor>
        <release>5</release>
        <name>persxfer 0.1.0</name>
    </server_version>

    <cc_status>
        <network_status>0</network_status>
        <ams_password_error>0</ams_password_error>
        <task_suspend_reason>0</task_suspend_reason>
        <task_mode>2</task_mode>
        <task_mode_perm>2</task_mode_perm>
        <task_mode_delay>0.000000</task_mode_delay>
        <gpu_suspend_reason>0</gpu_suspend_reason>
        <gpu_mode>2</gpu_mode>
        <gpu_mode_perm>2</gpu_mode_perm>
        <gpu_mode_delay>0.000000</gpu_mode_delay>
        <network_suspend_reason>4</network_suspend_reason>
        <network_mode>3</network_mode>
        <network_mode_perm>2</network_mode_perm>
        <network_mode_delay>59.500000</network_mode_delay>
        <disallow_attach>1</disallow_attach>
        <simple_gui_only>0</simple_gui_only>
        <max_event_log_lines>0</max_event_log_lines>
    </cc_status>

    <client_state>
    <project>
        <master_url>https://persxfer.invalid/</master_url>
        <project_name>persxfer</project_name>
        <user_name></user_name>
        <hostid>0</hostid>
        <resource_share>100.000000</resource_share>
    </project>
        <platform_name>persxfer</platform_name>
        <core_client_major_version>7</core_client_major_version>
        <core_client_minor_version>20</core_client_minor_version>
        <core_client_release>5</core_client_release>
        <executing_as_daemon>0</executing_as_daemon>
    </client_state>

    <projects>
    <project>
        <master_url>https://persxfer.invalid/</master_url>
        <project_name>persxfer</project_name>
        <user_name></user_name>
        <hostid>0</hostid>
        <resource_share>100.000000</resource_share>
    </project>
    </projects>

    <host_info>
        <timezone>0</timezone>
        <p_ncpus>0</p_ncpus>
    </host_info>

    <seqno>0</seqno>

    <msgs>
    </msgs>
    "##);
}

/// Everything that a connection brings, in pieces of these lengths.
fn framed(bytes: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Option<Unframed>) {
    let (mut framer, mut requests, mut rest) = (Framer::default(), Vec::new(), bytes);
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let n = cuts.next().map_or(rest.len(), |n| (*n).clamp(1, rest.len()));
        framer.push(&rest[..n]);
        rest = &rest[n..];
        loop {
            match framer.next_request() {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => break,
                Err(unframed) => return (requests, Some(unframed)),
            }
        }
    }
    (requests, None)
}

#[test]
fn many_requests_come_over_one_connection() {
    let (requests, end) = framed(b"<a/>\x03\n<b/>\n\x03\x03<c", &[]);
    assert_eq!((requests, end), (vec![b"<a/>".to_vec(), b"\n<b/>\n".to_vec(), b"".to_vec()], None));
    let mut framer = Framer::default();
    framer.push(b"<a/>\x03\r\n");
    assert_eq!(framer.next_request(), Ok(Some(b"<a/>".to_vec())));
    assert_eq!((framer.next_request(), framer.is_within()), (Ok(None), false));
    framer.push(b"<b");
    assert_eq!((framer.next_request(), framer.is_within()), (Ok(None), true));
}

#[test]
fn too_much_and_what_is_no_request_end_a_connection() {
    let long = |n: usize| [b"<".repeat(n), vec![3]].concat();
    assert_eq!(framed(&long(MAX_REQUEST - 1), &[4096]).1, None);
    assert_eq!(framed(&long(MAX_REQUEST), &[4096]).1, Some(Unframed::TooLong));
    assert_eq!(framed(&b"<".repeat(MAX_REQUEST), &[]).1, Some(Unframed::TooLong));
    assert_eq!(framed(b"POST / HTTP/1.1\r\n\r\n<quit/>\x03", &[1]), (vec![], Some(Unframed::NotXml)));
    assert_eq!(framed(b"<a/>\x03 GET /", &[]), (vec![b"<a/>".to_vec()], Some(Unframed::NotXml)));
}

proptest! {
    #[test]
    fn how_bytes_are_cut_changes_nothing(
        pieces in prop::collection::vec(prop_oneof![
            Just(b"<a/>".to_vec()), Just(vec![3]), Just(b" \n".to_vec()), Just(b"x".to_vec()),
            prop::collection::vec(any::<u8>(), 0..9), Just(b"<".repeat(40_000)),
        ], 0..12),
        cuts in prop::collection::vec(1usize..70_000, 1..6),
        short in prop::collection::vec(1usize..4, 1..4),
    ) {
        let bytes = pieces.concat();
        let whole = framed(&bytes, &[]);
        prop_assert_eq!(&framed(&bytes, &cuts), &whole);
        if bytes.len() < 2_000 {
            prop_assert_eq!(&framed(&bytes, &short), &whole);
        }
        whole.0.iter().for_each(|request| _ = Request::parse(request));
    }
}
