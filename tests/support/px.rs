//! Px: the built program in a folder of its own, with its own home, state file and environment, and what came of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::files::{HANGS, files_below, same_file};

/// A folder with everything a run of the program may touch.
#[derive(Debug)]
pub(crate) struct World {
    folder: tempfile::TempDir,
    /// Where downloads go unless a test says otherwise.
    pub(crate) out: PathBuf,
    /// The client-state file.
    pub(crate) state: PathBuf,
    runs: AtomicU32,
}

/// A command that is being put together.
#[derive(Debug)]
pub(crate) struct Px<'w> {
    world: &'w World,
    args: Vec<OsString>,
    urls: Vec<OsString>,
    out: Option<PathBuf>,
    delays: Option<(String, String)>,
    give_up: Option<String>,
    env: Vec<(String, String)>,
    cwd: PathBuf,
    /// What a shell says before it becomes the program.
    shell: Option<String>,
    stdin: Option<PathBuf>,
}

/// A run under way; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// A run that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("persxfer-test-").tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let (out, state) = (folder.path().join("out.bin"), folder.path().join("state/client_state.xml"));
        fs::create_dir(folder.path().join("state")).unwrap();
        Self { folder, out, state, runs: AtomicU32::new(0) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A fresh folder in the world.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// The program with these arguments and the world's state file.
    pub(crate) fn px<S: Into<OsString>>(&self, args: impl IntoIterator<Item = S>) -> Px<'_> {
        Px {
            world: self,
            args: args.into_iter().map(Into::into).collect(),
            urls: Vec::new(),
            out: None,
            delays: None,
            give_up: None,
            env: Vec::new(),
            cwd: self.folder.path().to_owned(),
            shell: None,
            stdin: None,
        }
    }

    /// `persxfer download URL -o out`, with delays in milliseconds and a give-up window of 30 s.
    pub(crate) fn download(&self, url: &str) -> Px<'_> {
        Px {
            urls: vec![url.into()],
            out: Some(self.out.clone()),
            delays: Some(("50ms".to_owned(), "200ms".to_owned())),
            give_up: Some("30s".to_owned()),
            ..self.px(["download"])
        }
    }

    /// The file under the final name is exactly this.
    #[track_caller]
    pub(crate) fn holds(&self, data: &[u8]) {
        same_file(&self.out, data);
    }

    /// Nothing stands under the final name.
    #[track_caller]
    pub(crate) fn holds_nothing(&self) {
        assert!(fs::symlink_metadata(&self.out).is_err(), "something stands under the final name");
    }

    /// Part files and journals anywhere in the world.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let mut found = files_below(self.folder.path());
        found.retain(|p| p.to_string_lossy().contains(".persxfer-"));
        found
    }

    /// The part file of `out`.
    pub(crate) fn part(&self) -> PathBuf {
        self.path("out.bin.persxfer-part")
    }

    /// The transfers of `state list --json`, with further arguments.
    #[track_caller]
    pub(crate) fn list(&self, more: &[&str]) -> Vec<serde_json::Value> {
        let ran = self.px(["state", "list", "--json"]).args(more).run();
        ran.exits(0);
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("state list --json prints JSON");
        assert_eq!(json["schema"], 1, "{json}");
        json["transfers"].as_array().expect("transfers is a list").clone()
    }

    /// The text of the client-state file.
    #[track_caller]
    pub(crate) fn state_text(&self) -> String {
        fs::read_to_string(&self.state).expect("there is a state file")
    }

    /// Replaces the text of every `<element>` of that name in the state file.
    #[track_caller]
    pub(crate) fn edit_state(&self, element: &str, text: &str) {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let before = self.state_text();
        let mut pieces = before.split(&open);
        let mut after = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (_, rest) = piece.split_once(&close).expect("the element is closed");
            after += &format!("{open}{text}{close}{rest}");
        }
        assert_ne!(before, after, "no <{element}> in the state file, or none to change");
        fs::write(&self.state, after).unwrap();
    }
}

impl Px<'_> {
    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn args<S: AsRef<str>>(mut self, args: &[S]) -> Self {
        self.args.extend(args.iter().map(|a| a.as_ref().into()));
        self
    }

    /// One more URL, which is another file.
    pub(crate) fn url(mut self, url: &str) -> Self {
        self.urls.push(url.into());
        self
    }

    pub(crate) fn mirror(self, url: &str) -> Self {
        self.args(&["--mirror", url])
    }

    /// Another target than the world's `out`; `None` leaves it to further arguments.
    pub(crate) fn out(mut self, path: Option<PathBuf>) -> Self {
        self.out = path;
        self
    }

    /// Into this folder, under whatever name the program chooses.
    pub(crate) fn dir(self, path: &Path) -> Self {
        self.out(None).arg("--dir").arg(path)
    }

    pub(crate) fn give_up(mut self, window: &str) -> Self {
        self.give_up = Some(window.to_owned());
        self
    }

    pub(crate) fn delays(mut self, min: &str, max: &str) -> Self {
        self.delays = Some((min.to_owned(), max.to_owned()));
        self
    }

    /// Patience as it is for people: the defaults.
    pub(crate) fn patient(mut self) -> Self {
        (self.delays, self.give_up) = (None, None);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn cwd(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.cwd);
        self
    }

    pub(crate) fn umask(mut self, umask: &'static str) -> Self {
        self.shell = Some(format!("umask {umask}"));
        self
    }

    /// Under this limit: `-n 12` (descriptors), `-f 2048` (the largest file, in blocks of 512 bytes).
    pub(crate) fn ulimit(mut self, limit: &'static str) -> Self {
        self.shell = Some(format!("ulimit {limit}"));
        self
    }

    /// In a folder that was deleted.
    pub(crate) fn nowhere(mut self) -> Self {
        self.shell = Some("mkdir gone && cd gone && rmdir ../gone".to_owned());
        self
    }

    /// Its standard output goes there.
    pub(crate) fn stdout_to(mut self, path: &'static str) -> Self {
        self.shell = Some(format!("exec >{path}"));
        self
    }

    /// Its standard input comes from this file.
    pub(crate) fn stdin_from(mut self, path: &Path) -> Self {
        self.stdin = Some(path.to_owned());
        self
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(self) -> Ran {
        self.start().end()
    }

    /// Starts it.
    #[track_caller]
    pub(crate) fn start(self) -> Running {
        let n = self.world.runs.fetch_add(1, Ordering::SeqCst);
        let (stdout, stderr) = (self.world.path(&format!("home/{n}.out")), self.world.path(&format!("home/{n}.err")));
        let child = self
            .command()
            .stdin(self.stdin.as_ref().map_or_else(Stdio::null, |path| File::open(path).unwrap().into()))
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .expect("the program can be started");
        Running { child, stdout, stderr }
    }

    fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_persxfer");
        let mut command = match &self.shell {
            None => Command::new(program),
            Some(before) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("{before} && exec \"$@\""), "sh", program]);
                shell
            }
        };
        command.args(&self.args);
        if let Some((min, max)) = &self.delays {
            command.args(["--min-delay", min, "--max-delay", max]);
        }
        if let Some(window) = &self.give_up {
            command.args(["--give-up", window]);
        }
        if let Some(out) = &self.out {
            command.arg("-o").arg(out);
        }
        command.arg("--state-file").arg(&self.world.state).args(&self.urls);
        command.env_clear().env("HOME", self.world.path("home")).env("LC_ALL", "C.UTF-8");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(self.env.iter().map(|(n, v)| (n, v))).current_dir(&self.cwd);
        command
    }
}

impl Running {
    /// Waits until it ends.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ran {
        let from = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if from.elapsed() > HANGS => panic!("it still runs:\n{}", self.stderr_so_far()),
                None => std::thread::sleep(Duration::from_millis(3)),
            }
        };
        let ran = Ran { status, stdout: read(&self.stdout), stderr: read(&self.stderr) };
        assert!(!ran.stderr.contains("panicked at"), "{ran}");
        ran
    }

    /// What came of it, if it has ended.
    pub(crate) fn try_end(mut self) -> Result<Ran, Self> {
        match self.child.try_wait().unwrap() {
            Some(_) => Ok(self.end()),
            None => Err(self),
        }
    }

    /// Waits for the condition, then sends the signal. It must not have ended by itself before that.
    #[track_caller]
    pub(crate) fn signal_when(mut self, signal: Signal, condition: impl Fn() -> bool) -> Self {
        let from = Instant::now();
        while !condition() {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("it ended ({status}) before it was to be stopped:\n{}", self.stderr_so_far());
            }
            assert!(from.elapsed() < HANGS, "what was waited for never came:\n{}", self.stderr_so_far());
            std::thread::sleep(Duration::from_millis(2));
        }
        self.signal(signal);
        self
    }

    /// `kill -9` when the condition holds.
    #[track_caller]
    pub(crate) fn kill_when(self, condition: impl Fn() -> bool) {
        let ran = self.signal_when(Signal::KILL, condition).end();
        assert_eq!(ran.status.signal(), Some(9), "it ended before it was killed\n{ran}");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process has an id");
        // It may have ended just now.
        let _ = kill_process(pid, signal);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stdout_so_far(&self) -> String {
        read(&self.stdout)
    }

    pub(crate) fn stderr_so_far(&self) -> String {
        read(&self.stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        self.exits_one_of(&[code])
    }

    #[track_caller]
    pub(crate) fn exits_one_of(&self, codes: &[i32]) -> &Self {
        assert!(self.status.code().is_some_and(|c| codes.contains(&c)), "not exit {codes:?}, but\n{self}");
        self
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.status.code() == Some(0)
    }

    /// Standard error holds one of these, in any case of letters.
    #[track_caller]
    pub(crate) fn says(&self, any: &[&str]) -> &Self {
        let all = self.stderr.to_lowercase();
        assert!(any.iter().any(|text| all.contains(&text.to_lowercase())), "none of {any:?} in\n{self}");
        self
    }

    /// Standard error holds all of these, in any case of letters.
    #[track_caller]
    pub(crate) fn says_all(&self, all: &[&str]) -> &Self {
        all.iter().for_each(|text| _ = self.says(&[text]));
        self
    }

    /// Neither stream holds this.
    #[track_caller]
    pub(crate) fn hides(&self, secret: &str) -> &Self {
        assert!(!self.stdout.contains(secret) && !self.stderr.contains(secret), "{secret} shows in\n{self}");
        self
    }

    /// It ended as a failure with this status, one line on standard error holds the thing, and no other line is there.
    #[track_caller]
    pub(crate) fn complains_in_one_line(&self, code: i32, thing: &str) -> &Self {
        self.exits(code).says(&[thing]);
        let lines = self.stderr.lines().filter(|l| !l.trim().is_empty()).count();
        assert_eq!(lines, 1, "more than one line, or none:\n{self}");
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n--- stdout\n{}\n--- stderr\n{}", self.status, self.stdout, self.stderr)
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
