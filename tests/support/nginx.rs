//! Nginx: a real server, started by the test from a configuration of its own and stopped with it.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running nginx that serves the folder `www` of its own folder.
#[derive(Debug)]
pub(crate) struct Nginx {
    folder: tempfile::TempDir,
    port: u16,
    server: String,
    child: Child,
}

/// One line of its access log.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) status: u16,
    /// Bytes of the body handed to the system for sending.
    pub(crate) body_bytes: u64,
    pub(crate) range: String,
    pub(crate) if_range: String,
    pub(crate) protocol: String,
    pub(crate) connection: u64,
}

impl Nginx {
    /// Starts one whose `server` block holds these directives; `None`, noted as a skip, where there is no nginx.
    pub(crate) fn start(test: &str, server: &str) -> Option<Self> {
        if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err() {
            super::skipped(test, "nginx is not installed");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("persxfer-nginx-").tempdir().unwrap();
        fs::create_dir(folder.path().join("www")).unwrap();
        let (port, child) = launch(folder.path(), server);
        Some(Self { folder, port, server: server.to_owned(), child })
    }

    /// `http://127.0.0.1:PORT` and the path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The same at another address of this machine, for a server with `listen ADDRESS:@port;`.
    pub(crate) fn url_at(&self, address: &str, path: &str) -> String {
        format!("http://{address}:{}{path}", self.port)
    }

    /// `https://localhost:PORT` and the path, for a server with [`Certificate`] directives.
    pub(crate) fn tls_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// Puts a file into the folder that is served; it takes the place of an older one at once.
    pub(crate) fn put(&self, name: &str, data: &[u8]) {
        let new = self.folder.path().join(format!("{name}.new"));
        fs::write(&new, data).unwrap();
        #[expect(clippy::disallowed_methods, reason = "what a test serves need not outlive a power cut")]
        fs::rename(new, self.www().join(name)).unwrap();
    }

    /// The same, of the date that it has at every mirror, as rsync keeps it.
    pub(crate) fn put_dated(&self, name: &str, data: &[u8]) {
        self.put(name, data);
        let written = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_767_323_045);
        fs::File::options().write(true).open(self.www().join(name)).unwrap().set_modified(written).unwrap();
    }

    pub(crate) fn www(&self) -> PathBuf {
        self.folder.path().join("www")
    }

    /// It dies at once, with every connection.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// It comes back on its old port.
    pub(crate) fn revive(&mut self) {
        self.kill();
        self.child = try_launch(self.folder.path(), &self.server, self.port).expect("the port is still free");
    }

    /// The access log so far. A request is logged when it has ended.
    pub(crate) fn log(&self) -> Vec<Line> {
        let text = fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default();
        text.lines().map(|l| Line::read(l).unwrap_or_else(|| panic!("a log line of its own form: {l}"))).collect()
    }

    /// Waits until that many requests have ended, and gives the log.
    pub(crate) fn log_of(&self, requests: usize) -> Vec<Line> {
        super::eventually("enough lines in the access log", || self.log().len() >= requests);
        self.log()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Line {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('|');
        let mut next = || fields.next().map(str::to_owned);
        Some(Self {
            status: next()?.parse().ok()?,
            body_bytes: next()?.parse().ok()?,
            range: next()?,
            if_range: next()?,
            protocol: next()?,
            connection: next()?.parse().ok()?,
        })
    }
}

/// A key and a certificate for localhost, signed by itself.
#[derive(Debug)]
pub(crate) struct Certificate {
    folder: tempfile::TempDir,
}

impl Certificate {
    /// Makes one with the openssl command; `None`, noted as a skip, where there is none.
    pub(crate) fn make(test: &str) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("persxfer-cert-").tempdir().unwrap();
        let made = Command::new("openssl")
            .args(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost"
                    .split(' '),
            )
            .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:TRUE"])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .status();
        match made {
            Ok(status) => assert!(status.success(), "openssl makes no certificate"),
            Err(_) => {
                super::skipped(test, "openssl is not installed");
                return None;
            }
        }
        Some(Self { folder })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// The directives that make a server use it.
    pub(crate) fn directives(&self) -> String {
        let folder = self.folder.path().display();
        format!("ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;")
    }
}

/// A free port may be taken by somebody else before nginx has it, so this tries a few times.
fn launch(folder: &Path, server: &str) -> (u16, Child) {
    for _ in 0..10 {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("loopback has free ports").port();
        if let Some(child) = try_launch(folder, server, port) {
            return (port, child);
        }
    }
    panic!("nginx does not start: {}", fs::read_to_string(folder.join("error.log")).unwrap_or_default());
}

fn try_launch(folder: &Path, server: &str, port: u16) -> Option<Child> {
    let conf = folder.join("nginx.conf");
    fs::write(&conf, configuration(folder, server, port)).unwrap();
    let log = File::options().create(true).append(true).open(folder.join("error.log")).unwrap();
    let mut child = Command::new("nginx")
        .args(["-e", "error.log", "-p"])
        .arg(folder)
        .arg("-c")
        .arg(&conf)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .ok()?;
    for _ in 0..1000 {
        if child.try_wait().ok()?.is_some() {
            return None;
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(child);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// One process in the foreground, so that its id is the child's and nothing is left behind.
fn configuration(folder: &Path, server: &str, port: u16) -> String {
    let d = folder.display();
    let tls = if server.contains("ssl_certificate ") { " ssl" } else { "" };
    let h2 = if server.contains("# http2") { " http2" } else { "" };
    let server = server.replace("@port", &port.to_string());
    format!(
        "daemon off;\nmaster_process off;\npid {d}/nginx.pid;\nerror_log {d}/error.log;\n\
         events {{ worker_connections 256; }}\n\
         http {{\n\
         log_format figures escape=none '$status|$body_bytes_sent|$http_range|$http_if_range|$server_protocol|$connection';\n\
         access_log {d}/access.log figures;\n\
         client_body_temp_path {d}/t1; proxy_temp_path {d}/t2; fastcgi_temp_path {d}/t3;\n\
         uwsgi_temp_path {d}/t4; scgi_temp_path {d}/t5;\n\
         types {{ text/plain txt; text/html html; }}\n\
         default_type application/octet-stream;\n\
         sendfile on;\n\
         server {{\n\
         listen 127.0.0.1:{port}{tls}{h2} sndbuf=128k;\n\
         server_name localhost;\n\
         root {d}/www;\n\
         {server}\n\
         }}\n\
         }}\n"
    )
}
