//! Runs of `sync`: sources that are down, two at once, modes and hooks, a full disk, real servers without an index (B9 of
//! the facts; `docs/sync.md` has the table).

#![allow(clippy::expect_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::instance::{Instance, Syncing, exit_list, fixture, module};
use support::nginx::Nginx;
use support::{Reply, World, eventually, ms, skipped};

const OUT: &str = "out/ExitLists";
const ONE: &str = "recent/exit-lists/one";

#[test]
fn b12_sources_on_one_host_have_folders_of_their_own() {
    let (one, other, set) = (Instance::start(), Instance::start(), Syncing::new());
    one.put(ONE, exit_list(10, 1));
    other.put(ONE, exit_list(10, 2));
    let secret = other.rig.url("/").replace("http://", "http://me:s3cret@");
    let lines = module("ExitLists", &[&one], "").replace("a http", &format!("b {secret}, a http"));
    set.configure(&lines);
    let ran = set.px(&["-vv", "--json"]).run();
    ran.exits(0).hides("s3cret");
    let folders: Vec<_> = support::names_in(&set.world.path("sync"));
    let ports = [&one, &other].map(|i| i.rig.url("").rsplit(':').next().expect("a port").to_owned());
    for port in ports {
        assert!(folders.contains(&format!("127.0.0.1_{port}")), "{folders:?}");
    }
    assert!(folders.iter().all(|name| !name.contains("s3cret") && !name.contains("me")), "{folders:?}");
}

#[test]
fn b13_what_a_source_that_is_down_had_is_not_merged_again() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put(ONE, exit_list(10, 1));
    set.exit_lists_from(&[&one], "");
    set.run().exits(0);
    fs::remove_file(set.world.path(OUT).join("one")).expect("removed");
    fs::remove_file(set.world.path("recent/exit-lists/one")).expect("removed");
    one.rig.stop();
    let ran = set.run();
    ran.exits(4).says_all(&["exitlists: a: no index"]);
    assert_eq!((set.names(OUT).len(), set.names("recent").len(), set.names("sync").len()), (0, 0, 1));
}

#[test]
fn b14_a_second_run_is_told_that_the_first_is_busy() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put(ONE, exit_list(10, 1));
    one.put("recent/exit-lists/two", exit_list(10, 2));
    set.exit_lists_from(&[&one], "");
    one.answer("/recent/exit-lists/two", move |_| Reply::status(404).late(ms(1_500)));
    let first = set.px(&[]).start();
    eventually("the first run is under way", || one.asked_for("/recent/exit-lists/two") == 1);
    let before = (set.tree("sync"), set.tree("out"), set.tree("recent"));
    let second = set.run();
    second.exits(5).says_all(&["exitlists: busy"]);
    assert_eq!((set.tree("sync"), set.tree("out"), set.tree("recent")), before, "it changes nothing");
    first.end().exits(0);
    assert_eq!(set.names(OUT), ["one"]);
}

#[test]
fn b19_modes_and_hooks() {
    let (one, world) = (Instance::start(), Syncing::new());
    one.put(ONE, exit_list(10, 1));
    let with = |mode: &str, hook: &str| {
        module("ExitLists", &[&one], &format!("ExitListsHook = {hook}")).replace("= SyncOnly", &format!("= {mode}"))
    };
    world.configure(&with("NoSync", "touch hooked"));
    world.run().exits(0);
    assert_eq!(
        (one.rig.connections(), world.world.path("sync").exists(), world.world.path("out").exists()),
        (0, false, false)
    );
    world.configure(&with("SyncOnly", "touch hooked"));
    world.run().exits(0);
    assert!(!world.world.path("hooked").exists() && world.names(OUT).len() == 1);
    for (hook, code) in [("touch hooked", 0), ("sh -c 'touch failed; exit 7'", 4), ("/no/such/program", 4)] {
        let set = Syncing::new();
        set.configure(&with("Sync", hook));
        let ran = set.run();
        ran.exits(code);
        assert_eq!(set.names(OUT).len(), 1, "{hook}: it syncs all the same");
        assert!(
            hook.starts_with('/') || set.world.path(if code == 0 { "hooked" } else { "failed" }).exists(),
            "{hook}"
        );
        if code == 4 {
            ran.says_all(&["its command", "are fetched all the same"]);
        }
    }
}

/// A file system of its own with little room, below the world; unmounted when it is dropped.
struct Small(std::path::PathBuf);

impl Small {
    fn mount(world: &World, name: &str, kib: u32) -> Option<Self> {
        let at = world.folder(name);
        let options = format!("size={kib}k");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).status();
        done.is_ok_and(|status| status.success()).then_some(Self(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn b27_a_full_disk_is_told_and_leaves_things_in_order() {
    let (one, set) = (Instance::start(), Syncing::new());
    let Some(_small) = Small::mount(&set.world, "sync", 400) else {
        skipped("b27_a_full_disk_is_told_and_leaves_things_in_order", "mounting a small tmpfs needs root");
        return;
    };
    one.put("recent/exit-lists/small", exit_list(10, 1));
    let big = support::noise(7, 600_000);
    one.put("recent/any/big", big.as_slice());
    let both = format!("{}{}", module("ExitLists", &[&one], ""), module("Any", &[&one], "AnyFolders = recent/any"));
    set.configure(&both);
    let ran = set.run();
    ran.exits(5).says_all(&["any: "]).says(&["space", "disk full", "no room"]);
    assert_eq!((set.names(OUT), set.names("out/Any").len()), (vec!["small".to_owned()], 0));
    let left: Vec<_> = support::files_below(&set.world.path("sync")).into_iter().filter(|p| is_staged(p)).collect();
    assert_eq!(left, [""; 0].map(std::path::PathBuf::from), "nothing is staged");
    one.put("recent/any/big", &big[..50_000]);
    std::thread::sleep(ms(300));
    set.run().exits(0);
    assert!(set.tree("out/Any")["big"] == big[..50_000]);
}

fn is_staged(path: &Path) -> bool {
    path.components().any(|part| ["staging", "placing"].iter().any(|name| part.as_os_str() == *name))
}

#[test]
fn what_a_run_has_finished_meanwhile_is_not_fetched_again() {
    let (one, set) = (Instance::start(), Syncing::new());
    let big = support::noise(8, 600_000);
    one.put("recent/any/big", big.as_slice());
    let served = support::Served::new(&big);
    let cut = std::sync::atomic::AtomicBool::new(false);
    one.answer("/recent/any/big", move |asked| match cut.swap(true, std::sync::atomic::Ordering::SeqCst) {
        false => served.reply(asked).cut(300_000, support::End::Close),
        true => served.reply(asked),
    });
    set.configure(&module("Any", &[&one], "AnyFolders = recent/any"));
    set.run().exits(4);
    let listed = set.world.list(&[]);
    assert_eq!((listed.len(), listed[0]["name"].as_str()), (1, Some("big")), "a transfer like any other");
    set.world.px(["run"]).run().exits(0);
    let asked = one.asked_for("/recent/any/big");
    assert_eq!(set.sources(0)[0]["fetched"], 1);
    assert_eq!(one.asked_for("/recent/any/big"), asked);
    assert!(
        set.tree("out/Any")["big"] == *big && set.world.list(&["--all"]).len() == 1,
        "the index is left in the state"
    );
}

#[test]
fn a_run_that_is_repeated_ends_when_it_is_told_to() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put(ONE, exit_list(10, 1));
    set.exit_lists_from(&[&one], "");
    let running = set.px(&["--every", "300ms"]).start();
    let running = running.signal_when(rustix::process::Signal::TERM, || one.asked_for("/index/index.json") >= 3);
    running.end().exits(0);
    assert_eq!(set.names(OUT), ["one"]);
}

#[test]
fn a_mistake_in_the_configuration_is_told_with_file_line_and_key() {
    let set = Syncing::new();
    set.configure("SyncExitLists = Sometimes");
    set.run().complains_in_one_line(2, "c.properties: line 3: SyncExitLists: \"Sometimes\" is neither");
    set.exit_lists_from(&[&Instance::start()], "");
    set.px(&["--module", "exits"]).run().complains_in_one_line(2, "there is no such module; there are exitlists");
}

/// A tree with a folder in a folder, and names that need quoting.
fn plant(www: &Path) -> [(&'static str, String); 3] {
    let files = [
        ("recent/exit-lists/2016-10-01-12-02-01", exit_list(10, 1)),
        ("recent/exit-lists/a b&c", exit_list(10, 2)),
        ("recent/exit-lists/sub/x", exit_list(10, 3)),
    ];
    for (path, text) in &files {
        fs::create_dir_all(www.join(path).parent().expect("a folder")).expect("made");
        fs::write(www.join(path), text).expect("written");
    }
    fs::create_dir_all(www.join("recent/torperf")).expect("made");
    fs::write(www.join("recent/torperf/x.tpf"), fixture("torperf")).expect("written");
    files
}

fn from_pages(set: &Syncing, url: &str) {
    set.configure(&format!(
        "SyncExitLists = SyncOnly\nSyncSourcesExitLists = pages+{url}\nExitListsOutDirectory = {OUT}\n"
    ));
}

#[track_caller]
fn mirrors_pages(set: &Syncing, files: &[(&str, String)]) {
    set.run().exits(0);
    for (path, text) in files {
        let below = path.strip_prefix("recent/exit-lists/").expect("below");
        assert_eq!(set.tree(OUT)[below], text.as_bytes());
        assert_eq!(set.tree("recent")[&format!("exit-lists/{below}")], text.as_bytes());
    }
    assert_eq!(set.names(OUT).len(), files.len());
    assert_eq!(set.sources(0)[0]["needed"], 0, "nothing is fetched twice");
}

#[test]
fn a_tree_of_nginx_without_an_index_by_its_pages() {
    for format in ["html", "json"] {
        let lines = format!("autoindex on; autoindex_format {format};");
        let Some(nginx) = Nginx::start("a_tree_of_nginx_without_an_index_by_its_pages", &lines) else { return };
        let (set, files) = (Syncing::new(), plant(&nginx.www()));
        from_pages(&set, &nginx.url("/"));
        mirrors_pages(&set, &files);
        fs::remove_file(nginx.www().join(files[2].0)).expect("removed");
        set.run().exits(0);
        assert_eq!((set.names("sync").len(), set.names(OUT).len()), (2, 3), "gone there, kept for good");
        fs::remove_dir_all(nginx.www().join("recent/exit-lists")).expect("removed");
        set.run().exits(0);
        assert_eq!(set.names("sync").len(), 2, "a folder that is gone is not an empty one");
    }
}

#[test]
fn a_tree_of_nginx_by_a_list_of_checksums() {
    let Some(nginx) = Nginx::start("a_tree_of_nginx_by_a_list_of_checksums", "") else { return };
    let (set, files) = (Syncing::new(), plant(&nginx.www()));
    let line = |(path, text): &(&str, String)| {
        format!("{}  {path}\n", support::digest("sha-256", text.as_bytes()).replace("sha-256=", ""))
    };
    nginx.put("SHA256SUMS", files.iter().map(line).collect::<String>().as_bytes());
    set.configure(&format!(
        "SyncTree = SyncOnly\nSyncSourcesTree = {}\nTreeOutDirectory = out/Tree\n",
        nginx.url("/SHA256SUMS")
    ));
    set.run().exits(0);
    assert_eq!(
        set.names("out/Tree"),
        ["recent/exit-lists/2016-10-01-12-02-01", "recent/exit-lists/a b&c", "recent/exit-lists/sub/x"]
    );
    let requests = nginx.log().len();
    set.run().exits(0);
    let log = nginx.log_of(requests + 1);
    assert_eq!((log.len() - requests, log.last().map(|line| line.status)), (1, Some(304)), "asked conditionally, once");
}

/// Apache, started by the test with a configuration of its own.
struct Apache {
    folder: tempfile::TempDir,
    port: u16,
}

impl Apache {
    fn start(test: &str) -> Option<Self> {
        let Some(modules) =
            ["/usr/lib/apache2/modules", "/usr/lib/httpd/modules"].iter().find(|p| Path::new(p).exists())
        else {
            skipped(test, "Apache is not installed");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("persxfer-apache-").tempdir().expect("a folder");
        fs::create_dir(folder.path().join("www")).expect("made");
        // Given back at once; whoever takes it meanwhile makes the start fail, and the test with it.
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let root = folder.path().display();
        let load = ["mpm_event", "authz_core", "autoindex", "dir", "mime"]
            .iter()
            .filter(|name| Path::new(modules).join(format!("mod_{name}.so")).exists())
            .map(|name| format!("LoadModule {name}_module {modules}/mod_{name}.so\n"));
        let text = format!(
            "{}ServerRoot {root}\nListen 127.0.0.1:{port}\nServerName localhost\nPidFile {root}/pid\nErrorLog {root}/log\n\
             TypesConfig /dev/null\nDocumentRoot {root}/www\n<Directory {root}/www>\nOptions Indexes\nRequire all granted\n\
             IndexOptions FancyIndexing HTMLTable NameWidth=*\n</Directory>\n",
            load.collect::<String>()
        );
        fs::write(folder.path().join("conf"), text).expect("written");
        let this = Self { folder, port };
        this.control("start");
        eventually("Apache listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(this)
    }

    fn control(&self, what: &str) {
        let program = ["apache2", "httpd"].into_iter().find(|p| Path::new("/usr/sbin").join(p).exists());
        let conf = self.folder.path().join("conf");
        let _ = Command::new(program.unwrap_or("httpd")).arg("-f").arg(conf).args(["-k", what]).status();
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        self.control("stop");
        // Its folder goes with it.
        let pid = self.folder.path().join("pid");
        eventually("Apache has ended", || !pid.exists());
    }
}

#[test]
fn a_tree_of_apache_without_an_index_by_its_pages() {
    let Some(apache) = Apache::start("a_tree_of_apache_without_an_index_by_its_pages") else { return };
    let (set, files) = (Syncing::new(), plant(&apache.folder.path().join("www")));
    from_pages(&set, &format!("http://127.0.0.1:{}/", apache.port));
    mirrors_pages(&set, &files);
}
