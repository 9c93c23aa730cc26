//! Sender: a world with one file to send, and the program that sends it with short waits.

use std::fs::{self, File};
use std::sync::Arc;

use crate::support::{Px, World, noise};

/// The name of the file, here and at the server.
pub(crate) const NAME: &str = "f";

/// A world with a file `f` in it.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) world: World,
    /// What the file holds.
    pub(crate) data: Arc<Vec<u8>>,
}

impl Sender {
    /// With so many bytes without a pattern.
    pub(crate) fn new(seed: u64, bytes: usize) -> Self {
        let (world, data) = (World::new(), noise(seed, bytes));
        fs::write(world.path(NAME), &data[..]).expect("the world can be written");
        Self { world, data }
    }

    /// `persxfer upload f URL`, with waits in milliseconds, and 60 s without progress to give up.
    pub(crate) fn upload(&self, url: &str) -> Px<'_> {
        self.world.px(["upload", NAME]).delays("20ms", "100ms").give_up("60s").url(url)
    }

    /// Other bytes of the same size, and the time of modification set back to what it was.
    pub(crate) fn edit(&mut self, seed: u64) {
        let path = self.world.path(NAME);
        let time = fs::metadata(&path).and_then(|m| m.modified()).expect("a file has a time");
        self.data = noise(seed, self.data.len());
        fs::write(&path, &self.data[..]).expect("it can be written");
        File::options().write(true).open(&path).and_then(|f| f.set_modified(time)).expect("a time can be set");
    }

    /// The only transfer in the state file.
    #[track_caller]
    pub(crate) fn told(&self) -> serde_json::Value {
        let mut listed = self.world.list(&["--all"]);
        assert_eq!(listed.len(), 1, "one transfer: {listed:?}");
        listed.remove(0)
    }
}
