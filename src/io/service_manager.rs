//! Words to the service manager (systemd's `sd_notify` protocol): a datagram to the socket that the environment names.

use std::os::unix::net::UnixDatagram;

/// The variable that names the socket: a path, or after `@` an abstract name.
const SOCKET: &str = "NOTIFY_SOCKET";

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The service has started.
    Ready,
    /// It is about to end.
    Stopping,
}

impl Word {
    const fn text(self) -> &'static [u8] {
        match self {
            Self::Ready => b"READY=1",
            Self::Stopping => b"STOPPING=1",
        }
    }
}

/// Tells the service manager, where there is one. That it cannot be told changes nothing for the service.
pub fn tell(word: Word) {
    let Some(socket) = std::env::var_os(SOCKET).filter(|name| !name.is_empty()) else { return };
    if let Err(error) = tell_at(socket.as_encoded_bytes(), word) {
        tracing::warn!(%error, "the service manager could not be told");
    }
}

fn tell_at(socket: &[u8], word: Word) -> std::io::Result<()> {
    let from = UnixDatagram::unbound()?;
    from.set_nonblocking(true)?;
    match socket.strip_prefix(b"@") {
        Some(name) => send_to_abstract(&from, name, word),
        None => {
            let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(socket);
            from.send_to(word.text(), path).map(drop)
        }
    }
}

#[cfg(target_os = "linux")]
fn send_to_abstract(from: &UnixDatagram, name: &[u8], word: Word) -> std::io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    from.send_to_addr(word.text(), &address).map(drop)
}

#[cfg(not(target_os = "linux"))]
fn send_to_abstract(_: &UnixDatagram, _: &[u8], _: Word) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_a_socket_by_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("bound");
        tell_at(path.as_os_str().as_encoded_bytes(), Word::Ready).expect("told");
        tell_at(path.as_os_str().as_encoded_bytes(), Word::Stopping).expect("told");
        let mut buffer = [0; 64];
        let mut heard = || {
            let n = manager.recv(&mut buffer).expect("heard");
            String::from_utf8_lossy(&buffer[..n]).into_owned()
        };
        assert_eq!([heard(), heard()], ["READY=1", "STOPPING=1"]);
        assert!(tell_at(b"/nowhere/at/all", Word::Ready).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn words_reach_an_abstract_socket() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("persxfer-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
        let manager = UnixDatagram::bind_addr(&address).expect("bound");
        tell_at(format!("@{name}").as_bytes(), Word::Ready).expect("told");
        let mut buffer = [0; 64];
        let n = manager.recv(&mut buffer).expect("heard");
        assert_eq!(&buffer[..n], b"READY=1");
    }
}
