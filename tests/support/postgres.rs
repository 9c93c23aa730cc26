//! A real PostgreSQL server, started by the test in a folder of its own and stopped with it.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "what is moved here need not outlive a power cut")]

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A running server. Local connections are trusted; those over TCP need a password.
pub(crate) struct Server {
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

/// How a server ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    /// In order; who is connected is thrown out.
    Stopped,
    /// As if it had crashed.
    Crashed,
}

impl Server {
    pub(crate) fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("persxfer-pg-").tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        copy(&template(), &folder.path().join("data"));
        give_away(folder.path());
        let mut server = Self { folder, port: 0, child: None };
        // Somebody else may take the port in between.
        for _ in 0..20 {
            server.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if server.revive() {
                return server;
            }
        }
        panic!("it does not start: {}", server.log());
    }

    /// Starts it, on its old port; whether it came up.
    pub(crate) fn revive(&mut self) -> bool {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let mut command = as_postgres(Command::new(binaries().join("postgres")));
        command.arg("-D").arg(self.folder.path().join("data")).arg("-k").arg(self.folder.path());
        command.args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
        command.args(["-c", "max_connections=40", "-c", "shared_buffers=16MB"]).stdin(Stdio::null());
        let mut child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        loop {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            let mut ready = Command::new(binaries().join("pg_isready"));
            ready.args(["-q", "-h"]).arg(self.folder.path());
            if ready.args(["-p", &self.port.to_string()]).status().unwrap().success() {
                self.child = Some(child);
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it, and waits until it has gone.
    pub(crate) fn end(&mut self, ends: Ends) {
        if let Some(mut child) = self.child.take() {
            let signal = match ends {
                Ends::Stopped => Signal::INT,
                Ends::Crashed => Signal::QUIT,
            };
            let _ = kill_process(Pid::from_child(&child), signal);
            let _ = child.wait();
        }
    }

    /// A new database of that name; its URL.
    pub(crate) fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.local(name, "postgres")
    }

    /// The URL of a database through the local socket.
    pub(crate) fn local(&self, database: &str, user: &str) -> String {
        format!("postgresql:///{database}?host={}&port={}&user={user}", self.folder.path().display(), self.port)
    }

    /// The URL of a database over TCP.
    pub(crate) fn tcp(&self, database: &str, user_and_password: &str) -> String {
        format!("postgres://{user_and_password}@127.0.0.1:{}/{database}", self.port)
    }

    /// What a statement answers, a row a line.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let mut psql = Command::new(binaries().join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database, "-h"]);
        let ran = psql.arg(self.folder.path()).args(["-p", &self.port.to_string(), "-c", sql]).output().unwrap();
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Ends::Crashed);
    }
}

/// Where the server's programs are: Debian keeps them out of the search path, a folder for each version.
fn binaries() -> PathBuf {
    let folders = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        folders.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").is_file()).collect();
    found.sort();
    found.pop().expect("the PostgreSQL server is installed (apt-get install postgresql)")
}

/// The server refuses to run as root; its package has made a user for it.
fn account() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let line = accounts.lines().find(|line| line.starts_with("postgres:")).expect("a user postgres");
    let mut numbers = line.split(':').skip(2).map(|number| number.parse().unwrap());
    Some((numbers.next().unwrap(), numbers.next().unwrap()))
}

fn as_postgres(mut command: Command) -> Command {
    if let Some((user, group)) = account() {
        command.uid(user).gid(group);
    }
    command
}

/// Makes the user of the server the owner of all that is there.
fn give_away(path: &Path) {
    let Some((user, group)) = account() else { return };
    chown(path, Some(user), Some(group)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

/// The data of a server that has never run: made once, because that takes longer than most tests.
fn template() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let version = binaries().parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
    let template = folder.join(format!("postgresql-{version}"));
    fs::create_dir_all(folder).unwrap();
    let lock = File::create(folder.join("postgresql.lock")).unwrap();
    lock.lock().unwrap();
    if !template.is_dir() {
        let new = tempfile::Builder::new().prefix("persxfer-pg-").tempdir().unwrap();
        give_away(new.path());
        let mut initdb = as_postgres(Command::new(binaries().join("initdb")));
        initdb.args(["-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync"]);
        initdb.args(["--auth-local=trust", "--auth-host=scram-sha-256", "-D"]).arg(new.path().join("data"));
        let made = initdb.current_dir(new.path()).output().unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let half = template.with_extension("half");
        let _ = fs::remove_dir_all(&half);
        copy(&new.path().join("data"), &half);
        fs::rename(half, &template).unwrap();
    }
    template
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "{} is copied", from.display());
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
}
