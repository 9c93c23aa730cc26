//! S3: moto's server, which keeps everything in memory and checks no signatures, and s3s-fs, which keeps files and checks them.

use std::fs;
use std::process::Command;

use super::daemon::Daemon;
use super::raw::{Heard, Raw};
use super::tools::{crate_program, python};

/// Keys that look like some.
const ANYBODY: &str = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, \
    Signature=00";

/// One that runs.
#[derive(Debug)]
pub(crate) struct Moto {
    pub(crate) daemon: Daemon,
}

impl Moto {
    /// Starts it without a bucket.
    #[track_caller]
    pub(crate) fn start() -> Self {
        let python = python();
        let daemon = Daemon::start("moto", move |_, port| {
            let mut command = Command::new(&python);
            command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p"]).arg(port.to_string());
            command
        });
        Self { daemon }
    }

    /// Makes a bucket, of at least three letters, and gives its URL.
    #[track_caller]
    pub(crate) fn bucket(&self, name: &str) -> String {
        let url = self.daemon.url(&format!("/{name}"));
        let heard = Raw::new("PUT", &url).body(b"").send();
        assert_eq!(heard.status(), Some(200), "a bucket can be made: {heard:?}");
        url
    }

    /// What an object holds; `None` where there is none.
    pub(crate) fn stored(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let heard = self.ask("GET", &format!("/{bucket}/{key}"));
        heard.answer.filter(|answer| answer.status == 200).map(|answer| answer.body)
    }

    /// The answer to a request without a body. Who asks without a name is refused what one PUT has stored; whether the name is
    /// right is not looked at.
    pub(crate) fn ask(&self, method: &str, target: &str) -> Heard {
        Raw::new(method, &self.daemon.url(target)).header("Authorization", ANYBODY).send()
    }
}

/// s3s-fs: objects are files, a bucket is a folder, and signatures are checked.
#[derive(Debug)]
pub(crate) struct S3Fs {
    pub(crate) daemon: Daemon,
}

impl S3Fs {
    /// Starts it with these keys and a bucket `bucket`.
    #[track_caller]
    pub(crate) fn start(key: &'static str, secret: &'static str) -> Self {
        let program = crate_program("s3s-fs");
        let daemon = Daemon::start("s3s-fs", move |folder, port| {
            fs::create_dir_all(folder.join("store/bucket")).expect("a folder can be made");
            let mut command = Command::new(&program);
            command.args(["--host", "127.0.0.1", "--port"]).arg(port.to_string());
            command.args(["--access-key", key, "--secret-key", secret]).arg(folder.join("store"));
            command
        });
        Self { daemon }
    }

    /// What an object of the bucket holds.
    pub(crate) fn stored(&self, key: &str) -> Option<Vec<u8>> {
        fs::read(self.daemon.store().join("bucket").join(key)).ok()
    }
}
