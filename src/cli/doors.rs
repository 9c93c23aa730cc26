//! Where a run listens, from what was typed: `--gui-rpc` and `--metrics`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::cli::args;
use crate::cli::trouble::Trouble;
use crate::engine::Doors;

/// BOINC's port.
const GUI_RPC_PORT: u16 = 31416;

/// Reads both.
pub(crate) fn read(asked: &args::Doors) -> Result<Doors, Trouble> {
    let gui_rpc = asked.gui_rpc.as_deref().map(gui_rpc).transpose()?;
    Ok(Doors { gui_rpc, metrics: asked.metrics.as_deref().map(metrics).transpose()? })
}

fn gui_rpc(text: &str) -> Result<SocketAddr, Trouble> {
    let wrong = |why| Trouble::option("--gui-rpc", text, why);
    let at = address(text, Some(GUI_RPC_PORT)).ok_or_else(|| wrong("write ADDRESS:PORT, such as 127.0.0.1:31416"))?;
    if !at.ip().is_loopback() {
        return Err(wrong(
            "only this machine may ask: its protocol has no encryption; write an address such as 127.0.0.1:31416",
        ));
    }
    Ok(at)
}

fn metrics(text: &str) -> Result<SocketAddr, Trouble> {
    let wrong = "write PORT or ADDRESS:PORT, such as 9416 or 127.0.0.1:9416";
    address(text, None).ok_or_else(|| Trouble::option("--metrics", text, wrong))
}

/// A port of this machine, an address with its port, or, where there is a usual port, an address alone.
fn address(text: &str, usual: Option<u16>) -> Option<SocketAddr> {
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let text = text.replacen("localhost", "127.0.0.1", usize::from(text.starts_with("localhost")));
    if let Ok(port) = text.parse() {
        return Some(SocketAddr::new(local, port));
    }
    let alone = || text.trim_start_matches('[').trim_end_matches(']').parse().ok();
    text.parse().ok().or_else(|| Some(SocketAddr::new(alone()?, usual?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(rpc: Option<&str>, metrics: Option<&str>) -> Result<Doors, String> {
        let asked = args::Doors { gui_rpc: rpc.map(Into::into), metrics: metrics.map(Into::into) };
        read(&asked).map_err(|trouble| trouble.to_string())
    }

    #[test]
    fn addresses_of_this_machine() {
        for (text, at) in [
            ("127.0.0.1:31416", "127.0.0.1:31416"),
            ("9", "127.0.0.1:9"),
            ("localhost:9", "127.0.0.1:9"),
            ("localhost", "127.0.0.1:31416"),
            ("127.8.0.1", "127.8.0.1:31416"),
            ("[::1]:9", "[::1]:9"),
            ("::1", "[::1]:31416"),
            ("[::1]", "[::1]:31416"),
        ] {
            let doors = both(Some(text), None).expect(text);
            assert_eq!(doors.gui_rpc.map(|at| at.to_string()).as_deref(), Some(at));
        }
        for text in ["", "x", "0.0.0.0", "10.0.0.1:31416", "[::]:9", "127.0.0.1:99999", "localhost.example:9"] {
            assert!(both(Some(text), None).is_err(), "{text}");
        }
    }

    #[test]
    fn metrics_may_be_for_others_where_that_is_said_in_full() {
        let at = |text| both(None, Some(text)).map(|doors| doors.metrics.map(|at| at.to_string()));
        assert_eq!(at("9416"), Ok(Some("127.0.0.1:9416".into())));
        assert_eq!(at("0.0.0.0:9416"), Ok(Some("0.0.0.0:9416".into())));
        assert!(at("0.0.0.0").is_err() && at(":9416").is_err());
    }
}
