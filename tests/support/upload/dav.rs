//! WebDAV and plain PUT: Apache, lighttpd (with and without ranged PUT), nginx, rclone and wsgidav.
//!
//! What each makes of a `Content-Range`, a killed body or a condition differs; `tests/upload_servers.rs` shows how.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::daemon::Daemon;
use super::tools::{part, program, python};

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dav {
    /// mod_dav: a `Content-Range` is honoured, even past a gap.
    Apache,
    /// mod_webdav as it comes: a `Content-Range` is refused with 400.
    Lighttpd,
    /// mod_webdav with `deprecated-unsafe-partial-put`: ranges go into a file that is there.
    LighttpdRanged,
    /// ngx_http_dav_module: a `Content-Range` is refused with 501; bodies up to 5 MiB; no `If-None-Match`.
    Nginx,
    /// `rclone serve webdav`: a `Content-Range` is ignored, and the slice stored as the whole; so is `If-None-Match`. A body
    /// that is cut leaves half a file.
    Rclone,
    /// wsgidav: a `Content-Range` is refused with 400; a body that is cut leaves half a file.
    Wsgidav,
}

/// One that runs.
#[derive(Debug)]
pub(crate) struct DavServer {
    pub(crate) daemon: Daemon,
    base: &'static str,
}

impl Dav {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Apache, Self::Lighttpd, Self::LighttpdRanged, Self::Nginx, Self::Rclone, Self::Wsgidav];

    /// Starts it on an empty folder.
    #[track_caller]
    pub(crate) fn start(self) -> DavServer {
        let daemon = match self {
            Self::Apache => apache(),
            Self::Lighttpd => lighttpd("webdav.activate = \"enable\"\n"),
            Self::LighttpdRanged => lighttpd(
                "webdav.activate = \"enable\"\nwebdav.opts = ( \"deprecated-unsafe-partial-put\" => \"enable\" )\n",
            ),
            Self::Nginx => nginx(),
            Self::Rclone => rclone(),
            Self::Wsgidav => wsgidav(),
        };
        DavServer { daemon, base: if self == Self::Apache { "/dav" } else { "" } }
    }
}

impl DavServer {
    /// The URL of a file in its top folder.
    pub(crate) fn url(&self, name: &str) -> String {
        self.daemon.url(&format!("{}/{name}", self.base))
    }

    /// Where that file lies on disk.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.daemon.store().join(name)
    }

    /// What it holds under that name.
    pub(crate) fn stored(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path(name)).ok()
    }

    /// Puts a file there behind the server's back.
    pub(crate) fn place(&self, name: &str, data: &[u8]) {
        fs::write(self.path(name), data).expect("the folder can be written");
        // A server that has given up its rights must be able to write it.
        let _ = fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o666));
    }

    /// The names of the files in its top folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = crate::support::names_in(&self.daemon.store());
        // mod_dav keeps properties there, and leaves the beginning of a body that was cut under a name of its own.
        names.retain(|name| name != ".DAV" && !name.starts_with(".davfs.tmp"));
        names
    }
}

fn apache() -> Daemon {
    let apache = program("apache2", "apache2-bin");
    Daemon::start("Apache", move |folder, port| {
        let rights = give_to_www_data(folder);
        let conf = folder.join("apache.conf");
        fs::write(&conf, apache_conf(folder, port, rights)).expect("a configuration can be written");
        let mut command = Command::new(&apache);
        // As one process, so that its id is the child's and nothing is left behind.
        command.arg("-X").arg("-f").arg(conf);
        command
    })
}

fn apache_conf(folder: &Path, port: u16, rights: &str) -> String {
    let d = folder.display();
    let modules = ["mpm_event", "authz_core", "alias", "dav", "dav_fs"].map(|name| {
        let file = part(&format!("/usr/lib/apache2/modules/mod_{name}.so"), "apache2-bin");
        format!("LoadModule {name}_module {}\n", file.display())
    });
    format!(
        "ServerRoot {d}\nPidFile {d}/pid\nDefaultRuntimeDir {d}\nListen 127.0.0.1:{port}\nServerName 127.0.0.1\n{rights}{}\
         DavLockDB {d}/lock\nErrorLog {d}/error.log\nDocumentRoot {d}\nAlias /dav {d}/store\n\
         <Directory {d}/store>\nDav On\nRequire all granted\n</Directory>\n",
        modules.concat()
    )
}

/// Apache does not serve as root: it gets a user, and the user the folder.
fn give_to_www_data(folder: &Path) -> &'static str {
    if !rustix::process::geteuid().is_root() {
        return "";
    }
    let users = fs::read_to_string("/etc/passwd").expect("the list of users can be read");
    let line = users.lines().find(|line| line.starts_with("www-data:")).expect("Debian has a user www-data");
    let id = |n: usize| line.split(':').nth(n).and_then(|id| id.parse().ok());
    for path in [folder.to_owned(), folder.join("store")] {
        chown(&path, id(2), id(3)).expect("root may give a folder away");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("and open it");
    }
    "User www-data\nGroup www-data\n"
}

fn lighttpd(dav: &'static str) -> Daemon {
    let lighttpd = program("lighttpd", "lighttpd");
    part("/usr/lib/lighttpd/mod_webdav.so", "lighttpd-mod-webdav");
    Daemon::start("lighttpd", move |folder, port| {
        let (conf, d) = (folder.join("lighttpd.conf"), folder.display());
        fs::create_dir_all(folder.join("uploads")).expect("a folder can be made");
        let text = format!(
            "server.port = {port}\nserver.bind = \"127.0.0.1\"\nserver.document-root = \"{d}/store\"\n\
             server.upload-dirs = ( \"{d}/uploads\" )\nserver.errorlog = \"{d}/error.log\"\n\
             server.modules = ( \"mod_webdav\" )\n{dav}"
        );
        fs::write(&conf, text).expect("a configuration can be written");
        let mut command = Command::new(&lighttpd);
        command.arg("-D").arg("-f").arg(conf);
        command
    })
}

fn nginx() -> Daemon {
    nginx_with(
        "location / { root STORE; dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on; \
         client_max_body_size 5m; }",
    )
}

/// Nginx with a server block of these directives; `STORE` stands for its store.
#[track_caller]
pub(super) fn nginx_with(server: &str) -> Daemon {
    let nginx = program("nginx", "nginx-light");
    let server = server.to_owned();
    Daemon::start("nginx", move |folder, port| {
        let (conf, d) = (folder.join("nginx.conf"), folder.display());
        let server = server.replace("STORE", &format!("{d}/store"));
        // As root it would hand its folders to another user: one process keeps the rights it has.
        let text = format!(
            "daemon off;\nmaster_process off;\npid {d}/nginx.pid;\nerror_log {d}/error.log;\n\
             events {{ worker_connections 256; }}\nhttp {{\naccess_log {d}/access.log;\n\
             client_body_temp_path {d}/t1; proxy_temp_path {d}/t2; fastcgi_temp_path {d}/t3;\n\
             uwsgi_temp_path {d}/t4; scgi_temp_path {d}/t5;\n\
             server {{\nlisten 127.0.0.1:{port};\nserver_name localhost;\n{server}\n}}\n}}\n"
        );
        fs::write(&conf, text).expect("a configuration can be written");
        let mut command = Command::new(&nginx);
        command.arg("-e").arg(folder.join("error.log")).arg("-p").arg(folder).arg("-c").arg(conf);
        command
    })
}

fn rclone() -> Daemon {
    let rclone = program("rclone", "rclone");
    Daemon::start("rclone", move |folder, port| {
        let mut command = Command::new(&rclone);
        // It looks for a configuration of the user unless it is given one.
        command.args(["--config", "/dev/null", "serve", "webdav"]).arg(folder.join("store"));
        command.arg("--addr").arg(format!("127.0.0.1:{port}"));
        command
    })
}

fn wsgidav() -> Daemon {
    let python = python();
    Daemon::start("wsgidav", move |folder, port| {
        let mut command = Command::new(&python);
        command.args(["-m", "wsgidav.server.server_cli", "--host=127.0.0.1", "--auth=anonymous", "--no-config"]);
        command.arg(format!("--port={port}")).arg("--root").arg(folder.join("store"));
        command
    })
}
