//! Kills of a sync between any two effects on the disk: whatever was the last one, no half file is to be seen in the trees,
//! and the same command again ends with the trees of a run that nobody disturbed (B9.15; `docs/crash-safety.md`).
//!
//! As in `crash_kill`, the program ends itself where `PERSXFER_ABORT_AT` says. `PERSXFER_KILL_EVERY=N` takes each Nth effect
//! only.
#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test that cannot be set up has failed, and tells")]

mod support;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;

use support::Ran;
use support::every_effect::{Bounds, Killed, at_every_effect};
use support::instance::{Instance, Syncing, exit_list, fixture, module, seconds_of_minutes_ago};

/// No story has so many effects.
const FAR: u64 = 2_000;
const SIGABRT: i32 = 6;

type Tree = BTreeMap<String, Vec<u8>>;

/// What the trees are made of.
struct Story {
    sources: [Instance; 2],
}

#[derive(Debug, PartialEq, Eq)]
struct Trees {
    out: Tree,
    recent: Tree,
    sync: Tree,
}

fn trees(set: &Syncing) -> Trees {
    // The folders of sources are named by ports, which differ from story to story and not within one.
    Trees { out: set.tree("out"), recent: set.tree("recent"), sync: set.tree("sync") }
}

fn configured(sources: &[Instance; 2]) -> Syncing {
    let set = Syncing::new();
    let both = [&sources[0], &sources[1]];
    set.configure(&format!("{}{}", module("ExitLists", &both, ""), module("RelayDescriptors", &both, "")));
    set
}

impl Story {
    fn at_every_effect(&self) {
        let wanted = self.undisturbed();
        at_every_effect(4, Bounds { least: 30, far: FAR }, |moment| self.killed_at(moment, &wanted));
    }

    fn undisturbed(&self) -> Trees {
        let set = configured(&self.sources);
        set.run().exits(0);
        trees(&set)
    }

    /// Was it killed there, and what is wrong then, or after the next run?
    fn killed_at(&self, moment: &str, wanted: &Trees) -> (Killed, Option<String>) {
        let set = configured(&self.sources);
        let ran = set.px(&[]).env("PERSXFER_ABORT_AT", moment).run();
        let killed = if ran.status.signal() == Some(SIGABRT) { Killed::Yes } else { Killed::No };
        (killed, Self::trouble(&set, &ran, wanted).err())
    }

    fn trouble(set: &Syncing, ran: &Ran, wanted: &Trees) -> Result<(), String> {
        for (name, now, wanted) in
            [("out", set.tree("out"), &wanted.out), ("recent", set.tree("recent"), &wanted.recent)]
        {
            let half = now.iter().find(|(path, bytes)| wanted.get(*path) != Some(bytes));
            if let Some((path, bytes)) = half {
                return Err(format!("in {name}, {path} has {} bytes that nobody sent\n{ran}", bytes.len()));
            }
        }
        let again = set.run();
        if !again.succeeded() {
            return Err(format!("the next run fails\n{again}"));
        }
        let now = trees(set);
        if now != *wanted {
            let names =
                |tree: &Tree| tree.iter().map(|(p, b)| format!("{p} ({})", b.len())).collect::<Vec<_>>().join(", ");
            let show =
                |t: &Trees| format!("out: {}\nrecent: {}\nsync: {}", names(&t.out), names(&t.recent), names(&t.sync));
            return Err(format!("the trees are\n{}\nand not\n{}\n{again}", show(&now), show(wanted)));
        }
        let staged = support::files_below(&set.world.path("."));
        let left = staged.iter().find(|path| {
            path.components().any(|part| ["staging", "placing", "pages"].iter().any(|name| part.as_os_str() == *name))
        });
        match left {
            Some(path) => Err(format!("left behind: {}\n{again}", path.display())),
            None if !set.world.list(&[]).is_empty() => Err(format!("the state lists {:?}", set.world.list(&[]))),
            None => Ok(()),
        }
    }
}

/// Three server descriptors, each with its annotation, published an hour before the test began.
fn descriptors(published: &str) -> Vec<String> {
    let text = fixture("server-descriptors").replace("2016-10-01 11:22:33", published);
    text.split("@type").skip(1).map(|rest| format!("@type{rest}")).collect()
}

fn story() -> Story {
    let sources = [Instance::start(), Instance::start()];
    let (list, each) = (exit_list(10, 1), descriptors(&seconds_of_minutes_ago(60)));
    let [one, other] = &sources;
    one.put("recent/exit-lists/a", &list);
    other.put("recent/exit-lists/a", &list);
    other.put("recent/exit-lists/b", exit_list(10, 2));
    one.put("recent/relay-descriptors/server-descriptors/x", each[..2].concat());
    other.put("recent/relay-descriptors/server-descriptors/x", each[1..].concat());
    Story { sources }
}

#[test]
fn b15_in_a_first_run_of_two_modules_and_two_sources() {
    story().at_every_effect();
}
