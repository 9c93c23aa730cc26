//! Daemon: a real server in a folder of its own and on a free port, which dies with the value.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

use crate::support::HANGS;

/// How it is started: with its folder, and the port that it is to listen on. It stays in the foreground, as one process.
type Launch = Box<dyn Fn(&Path, u16) -> Command + Send + Sync>;

/// A running server.
pub(crate) struct Daemon {
    name: &'static str,
    folder: tempfile::TempDir,
    port: Port,
    launch: Launch,
    child: Child,
}

impl Daemon {
    /// Starts one and waits until it takes connections. The folder `store` is made for what it stores.
    ///
    /// # Panics
    /// Where it does not start; the message holds what it said.
    #[track_caller]
    pub(crate) fn start(name: &'static str, launch: impl Fn(&Path, u16) -> Command + Send + Sync + 'static) -> Self {
        let folder = tempfile::Builder::new().prefix("persxfer-server-").tempdir().expect("a folder can be made");
        fs::create_dir(folder.path().join("store")).expect("a folder can be made");
        for _ in 0..3 {
            let port = Port::hold();
            if let Some(child) = begin(launch(folder.path(), port.number), folder.path(), port.number) {
                return Self { name, folder, port, launch: Box::new(launch), child };
            }
        }
        panic!("{name} does not start: {}", said(folder.path()));
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number
    }

    /// `http://127.0.0.1:PORT` and the path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port.number)
    }

    /// What it wrote to standard output and standard error.
    pub(crate) fn said(&self) -> String {
        said(self.folder.path())
    }

    /// It dies at once, with every connection; what it stored stays.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// It comes back on its old port, with its old folder.
    #[track_caller]
    pub(crate) fn revive(&mut self) {
        self.kill();
        let command = (self.launch)(self.folder.path(), self.port());
        let child = begin(command, self.folder.path(), self.port());
        self.child = child.unwrap_or_else(|| panic!("{} does not start again: {}", self.name, self.said()));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {} in {}", self.name, self.port.number, self.folder.path().display())
    }
}

/// A port of 127.0.0.1 that nobody else is given while this lives, though nobody listens on it yet.
///
/// A number that is only looked up may be another's by the time that a slow server takes it, and then a test talks to the
/// server of another test. A bound socket keeps it; that both allow the address to be used again lets the server in.
struct Port {
    _held: OwnedFd,
    number: u16,
}

impl Port {
    fn hold() -> Self {
        let held = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .and_then(|socket| set_socket_reuseaddr(&socket, true).map(|()| socket))
            .and_then(|socket| bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).map(|()| socket))
            .expect("loopback has free ports");
        let name = getsockname(&held).expect("a bound socket has an address");
        let number = SocketAddr::try_from(name).expect("it is one of the internet").port();
        Self { _held: held, number }
    }
}

fn said(folder: &Path) -> String {
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    text("said.log") + &text("error.log")
}

/// The child, once it listens; `None` where it ended instead.
fn begin(mut command: Command, folder: &Path, port: u16) -> Option<Child> {
    let log = || File::options().create(true).append(true).open(folder.join("said.log")).expect("a log can be opened");
    let program = command.get_program().to_owned();
    let mut child = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log())
        .stderr(log())
        .spawn()
        .unwrap_or_else(|e| panic!("{} cannot be run: {e}", program.display()));
    let from = Instant::now();
    while from.elapsed() < HANGS {
        if child.try_wait().expect("a child can be waited for").is_some() {
            return None;
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(child);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
