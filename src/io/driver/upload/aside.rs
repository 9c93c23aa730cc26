//! The digest of a large file, taken by a thread of its own while the file goes out.
//!
//! To read a large file before it is sent would cost more than sending it over a fast line, and a line that is not fast leaves
//! the time to read it meanwhile. From then on a file that was only touched is known again, in this session and later.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;
use tokio::time::Sleep;

use crate::core::digest::{Algorithm, Expected};
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::io::part::Digests;

/// A session that is over by then did not need it.
const AFTER: Delay = Delay::from_secs(2);
/// So much is read at once.
const PIECE: usize = 1 << 20;
/// And then others have their turn with disk and processor: at most 250 MiB a second.
const BREATH: Delay = Delay::from_millis(4);

/// Where it is.
pub(super) enum Aside {
    /// Known, or not wanted, or not to be had.
    Over,
    /// To be begun.
    Due { file: Arc<File>, size: Length, algorithm: Algorithm, wakes: Pin<Box<Sleep>> },
    /// Read.
    Runs { digest: oneshot::Receiver<Expected>, _stop: Stop },
}

/// Ends the thread when it is dropped.
pub(super) struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Aside {
    /// Of this file, once the session has lasted a while.
    pub(super) fn of(file: Arc<File>, size: Length, algorithm: Algorithm) -> Self {
        Self::Due { file, size, algorithm, wakes: Box::pin(tokio::time::sleep(AFTER.as_std())) }
    }

    /// The digest, once; where there is none to come this waits for ever. Cancel-safe.
    pub(super) async fn digest(&mut self) -> Expected {
        loop {
            match self {
                Self::Over => return std::future::pending().await,
                Self::Due { file, size, algorithm, wakes } => {
                    wakes.as_mut().await;
                    *self = begun(Arc::clone(file), *size, *algorithm);
                }
                Self::Runs { digest, .. } => {
                    let came = digest.await;
                    *self = Self::Over;
                    if let Ok(digest) = came {
                        return digest;
                    }
                }
            }
        }
    }
}

fn begun(file: Arc<File>, size: Length, algorithm: Algorithm) -> Aside {
    let (tell, digest) = oneshot::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let reads = move || {
        if let Some(bytes) = read(&file, size, algorithm, &stopped) {
            // The session may have ended.
            let _ = tell.send(Expected { algorithm, bytes });
        }
    };
    match std::thread::Builder::new().name("digest".into()).spawn(reads) {
        Ok(_) => Aside::Runs { digest, _stop: Stop(stop) },
        Err(_) => Aside::Over,
    }
}

/// Nothing where it was told to stop, or the file cannot be read to its end.
fn read(file: &File, size: Length, algorithm: Algorithm, stop: &AtomicBool) -> Option<Vec<u8>> {
    let (mut digests, mut buffer, mut at) = (Digests::new(&[algorithm]), vec![0; PIECE], 0);
    while at < size.0 {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let want = usize::try_from(size.0 - at).unwrap_or(PIECE).min(PIECE);
        match file.read_at(&mut buffer[..want], at) {
            Ok(0) => return None,
            Ok(n) => {
                digests.update(&buffer[..n]);
                at += n as u64;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        std::thread::sleep(BREATH.as_std());
    }
    digests.finish().pop().map(|(_, bytes)| bytes)
}
