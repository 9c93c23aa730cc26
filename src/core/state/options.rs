//! What a command said about a transfer, in the `<options>` element of its transfer. What has its default is left out.

use std::path::PathBuf;
use std::sync::Arc;

use super::decode::text;
use super::node::Node;
use super::scalar;
use super::shape::Shape;
use super::tree::Element;
use crate::core::backoff::Policy;
use crate::core::giveup::GiveUpFrom;
use crate::core::pers_xfer::options::{AddressFamily, Existing, FailedPart, Mtime, NetOptions, Options};
use crate::core::pers_xfer::record::Evidence;
use crate::core::time::Delay;
use crate::core::upload::{Authority, Interop, Protocol, ReadBack, Surplus, UploadOptions};
use crate::core::url::MirrorUrl;

/// The elements inside `<options>`, in order.
pub(super) const ORDER: &[&str] = &[
    "existing",
    "require_evidence",
    "retry_policy",
    "min_delay",
    "max_delay",
    "give_up",
    "give_up_from",
    "retry_on",
    "delete_partial",
    "remote_time",
    "connections",
    "report_url",
    "protocol",
    "upload_name",
    "media_type",
    "read_back",
    "surplus_is_done",
    "own_authority",
    "interop",
    "profile",
    "region",
    "manifest",
    "header",
    "user",
    "netrc",
    "cookies",
    "user_agent",
    "proxy",
    "cacert",
    "cert",
    "key",
    "insecure",
    "resolve",
    "address_family",
    "location_trusted",
    "connect_timeout",
    "first_byte_timeout",
    "stall_timeout",
];

/// The element; none where everything has its default.
pub(super) fn encode(options: &Options) -> Option<Node> {
    let mut nodes = patience(options);
    nodes.extend(upload(&options.upload));
    nodes.extend(net(&options.net));
    (!nodes.is_empty()).then(|| Node::parent("options", Shape::Options, nodes))
}

fn patience(options: &Options) -> Vec<Node> {
    let default = Options::default();
    let (min, max) = options.policy.given_bounds();
    let mut nodes = Vec::new();
    nodes.extend(match options.existing {
        Existing::Refuse => None,
        Existing::Overwrite => Some(Node::plain("existing", "overwrite")),
        Existing::Keep => Some(Node::plain("existing", "keep")),
    });
    let require = options.require;
    nodes.extend((require > Evidence::None).then(|| Node::plain("require_evidence", require.word())));
    let policy = options.policy.to_string();
    nodes.extend((policy != default.policy.to_string()).then(|| Node::text("retry_policy", &policy)));
    nodes.extend(min.map(|min| Node::plain("min_delay", min)));
    nodes.extend(max.map(|max| Node::plain("max_delay", max)));
    nodes.extend(unlike("give_up", options.give_up, default.give_up));
    let from_first = options.give_up_from == GiveUpFrom::FirstRequest;
    nodes.extend(from_first.then(|| Node::plain("give_up_from", "first-request")));
    nodes.extend(options.retry_on.iter().map(|code| Node::plain("retry_on", code)));
    nodes.extend((options.failed_part == FailedPart::Delete).then(|| Node::flag("delete_partial")));
    nodes.extend((options.mtime == Mtime::Remote).then(|| Node::flag("remote_time")));
    nodes.extend(options.connections.map(|n| Node::plain("connections", n)));
    nodes.extend(options.report_url.as_ref().map(|url| Node::text("report_url", url.secret_url().as_str())));
    nodes
}

/// A server's protocol stands before its URL.
fn upload(options: &UploadOptions) -> Vec<Node> {
    let given = |(url, protocol): &(MirrorUrl, Protocol)| {
        Node::text("protocol", &format!("{} {}", protocol.word(), url.secret_url()))
    };
    let mut nodes: Vec<Node> = options.protocols.iter().map(given).collect();
    nodes.extend(options.name.as_deref().map(|name| Node::text("upload_name", name)));
    nodes.extend(options.media_type.as_deref().map(|media_type| Node::text("media_type", media_type)));
    let (read_back, interop) = (options.read_back, options.interop);
    nodes.extend((read_back != ReadBack::default()).then(|| Node::plain("read_back", read_back.word())));
    nodes.extend((options.surplus == Surplus::Done).then(|| Node::flag("surplus_is_done")));
    nodes.extend((options.authority == Authority::Ours).then(|| Node::flag("own_authority")));
    nodes.extend((interop != Interop::default()).then(|| Node::plain("interop", interop.word())));
    nodes.extend(options.profile.as_deref().map(|profile| Node::text("profile", profile)));
    nodes.extend(options.region.as_deref().map(|region| Node::text("region", region)));
    nodes.extend(options.manifest.as_deref().map(|path| Node::path("manifest", path)));
    nodes
}

fn read_upload(element: &Element<'_>) -> UploadOptions {
    let given = |e: &Element<'_>| {
        let text = scalar::text(e);
        let (word, url) = text.split_once(' ')?;
        Some((MirrorUrl::parse(url).ok()?, Protocol::from_word(word)?))
    };
    let word = |name: &str| text(element, name);
    UploadOptions {
        protocols: element.all("protocol").filter_map(given).collect(),
        name: word("upload_name"),
        media_type: word("media_type"),
        read_back: word("read_back").and_then(|w| ReadBack::from_word(&w)).unwrap_or_default(),
        surplus: if flag(element, "surplus_is_done") { Surplus::Done } else { Surplus::Conflict },
        authority: if flag(element, "own_authority") { Authority::Ours } else { Authority::Named },
        profile: word("profile"),
        region: word("region"),
        manifest: element.child("manifest").map(scalar::path),
        interop: word("interop").and_then(|w| Interop::from_word(&w)).unwrap_or_default(),
    }
}

fn net(net: &NetOptions) -> Vec<Node> {
    let default = NetOptions::default();
    let words = |name, text: &Option<String>| text.as_deref().map(|t| Node::text(name, t));
    let file = |name, path: &Option<PathBuf>| path.as_deref().map(|p| Node::path(name, p));
    let flag = |name, set: bool| set.then(|| Node::flag(name));
    let mut nodes: Vec<Node> = net.headers.iter().map(|header| Node::text("header", header)).collect();
    nodes.extend(words("user", &net.user));
    nodes.extend(flag("netrc", net.netrc));
    nodes.extend(file("cookies", &net.cookies));
    nodes.extend(words("user_agent", &net.user_agent));
    nodes.extend(words("proxy", &net.proxy));
    nodes.extend(file("cacert", &net.cacert));
    nodes.extend(file("cert", &net.cert));
    nodes.extend(file("key", &net.key));
    nodes.extend(flag("insecure", net.insecure));
    nodes.extend(net.resolve.iter().map(|pin| Node::text("resolve", pin)));
    nodes.extend(match net.family {
        AddressFamily::Any => None,
        AddressFamily::V4 => Some(Node::plain("address_family", 4)),
        AddressFamily::V6 => Some(Node::plain("address_family", 6)),
    });
    nodes.extend(flag("location_trusted", net.location_trusted));
    nodes.extend(unlike("connect_timeout", net.connect_timeout, default.connect_timeout));
    nodes.extend(unlike("first_byte_timeout", net.first_byte_timeout, default.first_byte_timeout));
    nodes.extend(unlike("stall_timeout", net.stall_timeout, default.stall_timeout));
    nodes
}

fn unlike(name: &'static str, span: Delay, default: Delay) -> Option<Node> {
    (span != default).then(|| Node::plain(name, span))
}

/// The options of an `<options>` element.
pub(super) fn decode(element: &Element<'_>) -> Options {
    let default = Options::default();
    let is = |name: &str, word: &str| text(element, name).as_deref() == Some(word);
    Options {
        existing: match text(element, "existing").as_deref() {
            Some("overwrite") => Existing::Overwrite,
            Some("keep") => Existing::Keep,
            _ => Existing::Refuse,
        },
        require: text(element, "require_evidence").and_then(|w| Evidence::from_word(&w)).unwrap_or(default.require),
        policy: policy(element),
        give_up: span(element, "give_up").unwrap_or(default.give_up),
        give_up_from: if is("give_up_from", "first-request") { GiveUpFrom::FirstRequest } else { default.give_up_from },
        retry_on: element.all("retry_on").filter_map(|e| e.text().parse().ok()).collect(),
        failed_part: if flag(element, "delete_partial") { FailedPart::Delete } else { FailedPart::Keep },
        mtime: if flag(element, "remote_time") { Mtime::Remote } else { Mtime::Local },
        connections: text(element, "connections").and_then(|t| t.parse().ok()).filter(|n| *n > 0),
        report_url: text(element, "report_url").and_then(|t| MirrorUrl::parse(&t).ok()),
        upload: read_upload(element),
        net: Arc::new(read_net(element)),
    }
}

/// Bounds that do not fit together, or a policy of a later version, leave the policy's own, or the default.
fn policy(element: &Element<'_>) -> Policy {
    let named = text(element, "retry_policy").and_then(|t| Policy::parse(&t).ok()).unwrap_or_default();
    let bounded = named.clone().with_bounds(span(element, "min_delay"), span(element, "max_delay"));
    bounded.unwrap_or(named)
}

fn read_net(element: &Element<'_>) -> NetOptions {
    let default = NetOptions::default();
    let all = |name: &str| element.all(name).map(scalar::text).collect();
    let file = |name: &str| element.child(name).map(scalar::path);
    NetOptions {
        headers: all("header"),
        user: text(element, "user"),
        netrc: flag(element, "netrc"),
        cookies: file("cookies"),
        user_agent: text(element, "user_agent"),
        proxy: text(element, "proxy"),
        cacert: file("cacert"),
        cert: file("cert"),
        key: file("key"),
        insecure: flag(element, "insecure"),
        resolve: all("resolve"),
        family: match text(element, "address_family").as_deref() {
            Some("4") => AddressFamily::V4,
            Some("6") => AddressFamily::V6,
            _ => AddressFamily::Any,
        },
        location_trusted: flag(element, "location_trusted"),
        connect_timeout: span(element, "connect_timeout").unwrap_or(default.connect_timeout),
        first_byte_timeout: span(element, "first_byte_timeout").unwrap_or(default.first_byte_timeout),
        stall_timeout: span(element, "stall_timeout").unwrap_or(default.stall_timeout),
    }
}

fn flag(element: &Element<'_>, name: &str) -> bool {
    scalar::flag(element.child(name))
}

fn span(element: &Element<'_>, name: &str) -> Option<Delay> {
    element.child(name).and_then(|e| scalar::span(&e.text()))
}
