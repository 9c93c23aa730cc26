//! Instance: a server with a tree and an index of it, as CollecTor has, each of which can be made to misbehave; and the
//! program with a configuration of its own to fetch from several of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::Digest as _;

use super::rig::lock;
use super::{Asked, Px, Ran, Reply, Rig, Served, World, files_below};

/// A running instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) rig: Rig,
    state: Arc<Mutex<State>>,
}

type Tweak = Arc<dyn Fn(&mut Value) + Send + Sync>;
type Answer = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

#[derive(Default)]
struct State {
    files: BTreeMap<String, (Arc<Vec<u8>>, String)>,
    answers: BTreeMap<String, Answer>,
    tweak: Option<Tweak>,
    created: Option<String>,
    bare: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.files.keys()).finish()
    }
}

impl Instance {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let theirs = Arc::clone(&state);
        let rig = Rig::start(move |asked| lock(&theirs).reply(asked));
        Self { rig, state }
    }

    /// A file, changed at a minute long ago.
    pub(crate) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        self.put_at(path, bytes, "2016-10-01 12:05");
    }

    pub(crate) fn put_at(&self, path: &str, bytes: impl AsRef<[u8]>, modified: &str) {
        let file = (Arc::new(bytes.as_ref().to_vec()), modified.to_owned());
        lock(&self.state).files.insert(path.to_owned(), file);
    }

    pub(crate) fn remove(&self, path: &str) {
        lock(&self.state).files.remove(path);
    }

    /// A request for that path is answered so from now on, whatever the tree holds.
    pub(crate) fn answer(&self, path: &str, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) {
        lock(&self.state).answers.insert(path.to_owned(), Arc::new(answer));
    }

    pub(crate) fn answer_as_usual(&self, path: &str) {
        lock(&self.state).answers.remove(path);
    }

    /// The index is changed so, each time it is made.
    pub(crate) fn tweak(&self, tweak: impl Fn(&mut Value) + Send + Sync + 'static) {
        lock(&self.state).tweak = Some(Arc::new(tweak));
    }

    /// The index tells neither digests nor sizes.
    pub(crate) fn tell_little(&self) {
        lock(&self.state).bare = true;
    }

    /// The index says that it was made then.
    pub(crate) fn created(&self, at: &str) {
        lock(&self.state).created = Some(at.to_owned());
    }

    /// How often a path was asked for.
    pub(crate) fn asked_for(&self, path: &str) -> usize {
        self.rig.asked().iter().filter(|asked| asked.target == path).count()
    }
}

impl State {
    fn reply(&self, asked: &Asked) -> Reply {
        if let Some(answer) = self.answers.get(&asked.target) {
            return answer(asked);
        }
        let path = asked.target.trim_start_matches('/');
        if path == "index/index.json" {
            let index = Arc::new(self.index().to_string().into_bytes());
            return served(&index).reply(asked);
        }
        self.files.get(path).map_or_else(|| Reply::status(404), |(bytes, _)| served(bytes).reply(asked))
    }

    fn index(&self) -> Value {
        let created = self.created.clone().unwrap_or_else(|| minutes_ago(0));
        let mut root = json!({ "index_created": created, "path": "" });
        for (path, (bytes, modified)) in &self.files {
            let mut names: Vec<&str> = path.split('/').collect();
            let name = names.pop().unwrap_or_default();
            let mut file = json!({ "path": name, "last_modified": modified });
            if !self.bare {
                file["size"] = json!(bytes.len());
                let digest = sha2::Sha256::digest(bytes.as_slice());
                file["sha256"] = json!(base64::engine::general_purpose::STANDARD.encode(digest));
            }
            push(&mut node(&mut root, &names)["files"], file);
        }
        if let Some(tweak) = &self.tweak {
            tweak(&mut root);
        }
        root
    }
}

fn served(bytes: &Arc<Vec<u8>>) -> Served {
    Served::new(bytes).etag(&format!("\"{}\"", hex::encode(&sha2::Sha256::digest(bytes.as_slice())[..8])))
}

/// The folder of that path in an index, made where it is missing.
pub(crate) fn node<'v>(root: &'v mut Value, names: &[&str]) -> &'v mut Value {
    let Some((first, rest)) = names.split_first() else { return root };
    let list = &mut root["directories"];
    if list.is_null() {
        *list = json!([]);
    }
    let list = list.as_array_mut().expect("a list");
    let at = list.iter().position(|folder| folder["path"] == *first).unwrap_or_else(|| {
        list.push(json!({ "path": first }));
        list.len() - 1
    });
    node(&mut list[at], rest)
}

pub(crate) fn push(list: &mut Value, value: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().expect("a list").push(value);
}

/// As an index and a descriptor tell it.
pub(crate) fn minutes_ago(n: i64) -> String {
    moment(n, "%Y-%m-%d %H:%M")
}

pub(crate) fn seconds_of_minutes_ago(n: i64) -> String {
    moment(n, "%Y-%m-%d %H:%M:%S")
}

fn moment(minutes_ago: i64, form: &str) -> String {
    let at = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(minutes_ago);
    at.strftime(form).to_string()
}

/// A fixture of `tests/fixtures/sync`, as text.
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sync").join(name);
    std::fs::read_to_string(path).expect("a fixture")
}

/// An exit list that was downloaded so many minutes ago, with an address that tells it from others. A second later it is
/// another one: whoever compares holds on to it.
pub(crate) fn exit_list(minutes_ago: i64, last: u8) -> String {
    let list = fixture("exit-list").replace("2016-10-01 12:02:01", &seconds_of_minutes_ago(minutes_ago));
    list.replace("192.0.2.99", &format!("192.0.2.{last}"))
}

/// The program, with a configuration of its own.
#[derive(Debug)]
pub(crate) struct Syncing {
    pub(crate) world: World,
}

impl Syncing {
    pub(crate) fn new() -> Self {
        Self { world: World::new() }
    }

    /// Writes the configuration: `SyncFolder` and `RecentPath` as ever, and these lines.
    pub(crate) fn configure(&self, lines: &str) {
        let text = format!("SyncFolder = sync\nRecentPath = recent\n{lines}\n");
        std::fs::write(self.world.path("c.properties"), text).expect("written");
    }

    /// Exit lists from these, in order.
    pub(crate) fn exit_lists_from(&self, instances: &[&Instance], more: &str) {
        self.configure(&module("ExitLists", instances, more));
    }

    pub(crate) fn px(&self, args: &[&str]) -> Px<'_> {
        let all = ["sync", "c.properties"].iter().chain(args).map(|&arg| arg.to_owned());
        self.world.px(all).delays("50ms", "200ms").give_up("30s")
    }

    /// Runs it once.
    #[track_caller]
    pub(crate) fn run(&self) -> Ran {
        self.px(&[]).run()
    }

    /// The report of one more run, which ends with this status.
    #[track_caller]
    pub(crate) fn report(&self, code: i32) -> Value {
        let ran = self.px(&["--json"]).run();
        ran.exits(code);
        serde_json::from_str(&ran.stdout).expect("a report")
    }

    /// What the report of one more run says of the sources of its only module.
    #[track_caller]
    pub(crate) fn sources(&self, code: i32) -> Vec<Value> {
        self.report(code)["modules"][0]["sources"].as_array().expect("sources").clone()
    }

    /// The files below a folder of the world, by their paths there, but those that are the program's own.
    pub(crate) fn tree(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.world.path(folder);
        let within = |path: &PathBuf| path.strip_prefix(&root).expect("below").to_str().expect("text").to_owned();
        let all = if root.exists() { files_below(&root) } else { Vec::new() };
        let shown = all.iter().filter(|path| !within(path).contains(".persxfer-sync"));
        shown.map(|path| (within(path), std::fs::read(path).expect("read"))).collect()
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        self.tree(folder).into_keys().collect()
    }
}

/// The lines of a module in mode SyncOnly.
pub(crate) fn module(stem: &str, instances: &[&Instance], more: &str) -> String {
    let urls = instances.iter().zip('a'..).map(|(instance, name)| format!("{name} {}", instance.rig.url("/")));
    let urls: Vec<_> = urls.collect();
    format!("Sync{stem} = SyncOnly\nSyncSources{stem} = {}\n{stem}OutDirectory = out/{stem}\n{more}\n", urls.join(", "))
}
