//! tus 1.0: @tus/server on Node and tuspyserver under uvicorn, and nginx as a front end that buffers before either.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::daemon::Daemon;
use super::dav::nginx_with;
use super::tools::{crate_program, node_modules, program, python};

/// The options of @tus/server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TusNode {
    /// How long after its creation an upload expires; never, if `None`.
    pub(crate) expiration: Option<Duration>,
    /// Does Location hold a path only? It is a whole URL otherwise.
    pub(crate) relative_location: bool,
    /// The largest upload in bytes; any, if `None`.
    pub(crate) max_size: Option<u64>,
}

/// A tus server that runs.
#[derive(Debug)]
pub(crate) struct Tus {
    pub(crate) daemon: Daemon,
}

impl TusNode {
    /// Starts @tus/server with its store of files.
    #[track_caller]
    pub(crate) fn start(self) -> Tus {
        let (node, modules) = (program("node", "nodejs (20.19 or later)"), node_modules());
        let daemon = Daemon::start("@tus/server", move |folder, port| {
            let link = folder.join("node_modules");
            if !link.exists() {
                // Modules are looked for beside the script.
                std::os::unix::fs::symlink(&modules, &link).expect("a link can be made");
            }
            fs::write(folder.join("server.mjs"), self.script(folder, port)).expect("a script can be written");
            let mut command = Command::new(&node);
            command.arg(folder.join("server.mjs"));
            command
        });
        Tus { daemon }
    }

    fn script(self, folder: &Path, port: u16) -> String {
        let directory = format!("{:?}", folder.join("store"));
        let expires = self.expiration.map_or(0, |age| age.as_millis());
        let largest = self.max_size.map_or(String::from("undefined"), |n| n.to_string());
        let relative = self.relative_location;
        format!(
            "import {{ Server }} from '@tus/server';\nimport {{ FileStore }} from '@tus/file-store';\n\
             const datastore = new FileStore({{ directory: {directory}, expirationPeriodInMilliseconds: {expires} }});\n\
             const options = {{ path: '/files', datastore, relativeLocation: {relative}, maxSize: {largest} }};\n\
             new Server(options).listen({port}, '127.0.0.1');\n"
        )
    }
}

impl Tus {
    /// Starts the crate tus-server: it checks sums, and locks an upload while a request for it runs.
    #[track_caller]
    pub(crate) fn crate_server() -> Self {
        let server = crate_program("tus-server");
        let daemon = Daemon::start("tus-server", move |folder, port| {
            let mut command = Command::new(&server);
            command.args(["serve", "--all-extensions", "--addr"]).arg(format!("127.0.0.1:{port}"));
            command.arg("--storage-uri").arg(format!("fs:///?root={}", folder.join("store").display()));
            command.arg("--state-dir").arg(folder.join("state"));
            command
        });
        Self { daemon }
    }

    /// Starts tuspyserver; uploads may have `max_size` bytes.
    #[track_caller]
    pub(crate) fn python(max_size: u64) -> Self {
        let python = python();
        let daemon = Daemon::start("tuspyserver", move |folder, port| {
            let script = format!(
                "from fastapi import FastAPI\nfrom tuspyserver import create_tus_router\nimport uvicorn\n\
                 app = FastAPI()\napp.include_router(create_tus_router(prefix='files', files_dir={:?}, max_size={max_size}))\n\
                 uvicorn.run(app, host='127.0.0.1', port={port})\n",
                folder.join("store")
            );
            fs::write(folder.join("server.py"), script).expect("a script can be written");
            let mut command = Command::new(&python);
            command.arg(folder.join("server.py"));
            command
        });
        Self { daemon }
    }

    /// The URL where uploads are created.
    pub(crate) fn url(&self) -> String {
        self.daemon.url("/files")
    }

    /// What it holds for every upload, whole or not, that it has not forgotten.
    pub(crate) fn stored(&self) -> Vec<Vec<u8>> {
        let store = self.daemon.store();
        let names = crate::support::names_in(&store);
        // Beside an upload lies what is known of it.
        let data = names.iter().filter(|name| !name.contains('.'));
        data.filter_map(|name| fs::read(store.join(name)).ok()).collect()
    }
}

/// Nginx before the server at that port: it takes the whole body before the server hears of it, and answers 413 to one
/// beyond `largest` (as nginx writes sizes: `1m`; `0` for any).
#[track_caller]
pub(crate) fn nginx_before(port: u16, largest: &str) -> Daemon {
    nginx_with(&format!(
        "location / {{ client_max_body_size {largest}; proxy_pass http://127.0.0.1:{port}; \
         proxy_set_header Host $http_host; }}"
    ))
}

/// Nginx before the server at that port that does not pass on what the client called it: the server then names its own port.
#[track_caller]
pub(crate) fn nginx_hiding(port: u16) -> Daemon {
    nginx_with(&format!(
        "location / {{ client_max_body_size 0; proxy_redirect off; proxy_pass http://127.0.0.1:{port}; }}"
    ))
}
