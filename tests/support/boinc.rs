//! A service that BOINC's tools may ask, and `boinccmd` (Debian's `boinc-client`), which asks it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{Running, World, eventually};

/// The address of our project, by which BOINC's tools name our transfers.
pub(crate) const PROJECT: &str = "https://persxfer.invalid/";

/// `persxfer run --forever` with both doors open, on ports that the system chose.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) run: Running,
    pub(crate) rpc: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) password: String,
}

/// What `boinccmd` said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Service {
    /// Starts it, with further arguments, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(w: &World, more: &[&str]) -> Self {
        let arguments = ["run", "--forever", "--gui-rpc=127.0.0.1:0", "--metrics", "0"];
        let run = w.px(arguments).args(more).start();
        eventually("it listens", || run.stderr_so_far().contains("metrics on "));
        let said = run.stderr_so_far();
        let after = |words: &str| {
            let rest = said.split_once(words).unwrap_or_else(|| panic!("no {words:?} in {said}")).1;
            rest.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ':')
                .next()
                .unwrap_or_default()
                .parse()
                .unwrap()
        };
        let (rpc, metrics) = (after("GUI RPC on "), after("metrics on http://"));
        let password = std::fs::read_to_string(w.path("state/gui_rpc_auth.cfg")).unwrap().trim().to_owned();
        Self { run, rpc, metrics, password }
    }

    /// `boinccmd` with the password.
    #[track_caller]
    pub(crate) fn boinccmd(&self, arguments: &[&str]) -> Said {
        self.boinccmd_with(Some(&self.password), arguments)
    }

    /// `boinccmd` with that password, or none.
    #[track_caller]
    pub(crate) fn boinccmd_with(&self, password: Option<&str>, arguments: &[&str]) -> Said {
        let mut command = Command::new(program("boinccmd"));
        command.args(["--host", &self.rpc.to_string()]);
        if let Some(password) = password {
            command.args(["--passwd", password]);
        }
        // It looks for a password in the folder it is started in.
        let ended = command.args(arguments).current_dir("/").env_clear().env("LC_ALL", "C.UTF-8").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said { code: ended.status.code(), out: text(ended.stdout), err: text(ended.stderr) }
    }

    /// The metrics, as they come over HTTP.
    #[track_caller]
    pub(crate) fn metrics(&self) -> String {
        let answer = talk(self.metrics, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        body.to_owned()
    }

    /// The value of a metric, written with its labels.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let all = self.metrics();
        let value = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map(|value| value.parse().unwrap())
    }
}

impl Said {
    /// It went well.
    #[track_caller]
    pub(crate) fn is_done(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// A line of what it printed, without blanks at the ends.
    pub(crate) fn has(&self, line: &str) -> bool {
        self.out.lines().any(|l| l.trim() == line)
    }

    /// The number behind these words, of the first line that has them.
    pub(crate) fn number(&self, words: &str) -> Option<f64> {
        self.out.lines().find_map(|line| line.trim().strip_prefix(words)?.trim().parse().ok())
    }
}

/// Sends bytes, and reads until the other end closes.
#[track_caller]
pub(crate) fn talk(to: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // One that closes while something is unread resets the connection; what came before counts.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A program of Debian's `boinc-client`.
#[track_caller]
pub(crate) fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is not installed: apt-get install boinc-client, or run tests/run, which does")
    })
}
