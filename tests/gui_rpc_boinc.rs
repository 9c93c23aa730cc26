//! The other way: Debian's own BOINC client, given an account file of our project, takes up a state file of ours and goes on
//! with a download from where we were.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use support::boinc::program;
use support::{End, Rig, Served, World, eventually, noise};

const MB: usize = 1 << 20;

/// Its account with our project.
const ACCOUNT: &str = "<account>
    <master_url>https://persxfer.invalid/</master_url>
    <authenticator>0123456789abcdef0123456789abcdef</authenticator>
    <project_name>persxfer</project_name>
</account>
";

/// Whatever is not on this machine goes to a proxy that is not there.
const CONFIG: &str = "<cc_config>
    <options>
        <dont_contact_ref_site>1</dont_contact_ref_site>
        <no_info_fetch>1</no_info_fetch>
        <proxy_info>
            <use_http_proxy>1</use_http_proxy>
            <http_server_name>127.0.0.1</http_server_name>
            <http_server_port>9</http_server_port>
            <no_proxy>127.0.0.1</no_proxy>
        </proxy_info>
    </options>
</cc_config>
";

/// A BOINC client; it is killed when this is dropped.
struct Client(Child);

impl Client {
    fn start(folder: &Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut command = Command::new(program("boinc"));
        command.arg("--dir").arg(folder).args(["--gui_rpc_port", &port.to_string()]);
        command.args(["--allow_multiple_clients", "--no_info_fetch", "--skip_cpu_benchmarks"]);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder).current_dir(folder);
        let child = command.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log).spawn().unwrap();
        Self(child)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_client_goes_on_with_a_download_of_ours() {
    let (w, data) = (World::new(), noise(620, 3 * MB));
    let served = Served::new(&data);
    let rig = {
        let served = served.clone();
        Rig::start(move |a| served.reply(a).cut(MB, End::Hang))
    };
    w.px(["add", "download", &rig.url("/f?a=1&b=2"), "-o"]).arg(&w.out).run().exits(0);
    let run = w.px(["run"]).start();
    let held = || fs::metadata(w.part()).map_or(0, |meta| meta.len());
    run.signal_when(Signal::TERM, || held() == MB as u64).end().exits(4);
    assert_eq!(held(), MB as u64);

    let folder = w.folder("boinc");
    let files = w.folder("boinc/projects/persxfer.invalid");
    fs::write(folder.join("account_persxfer.invalid.xml"), ACCOUNT).unwrap();
    fs::write(folder.join("cc_config.xml"), CONFIG).unwrap();
    // A client drops files that no task of its refers to, unless they are to stay.
    let state = w.state_text().replace("<status>0</status>", "<status>0</status>\n    <sticky/>");
    assert!(state.contains("<sticky/>"), "{state}");
    fs::write(folder.join("client_state.xml"), state).unwrap();
    fs::copy(w.part(), files.join("out.bin")).unwrap();

    let before = rig.count();
    rig.now(move |a| served.reply(a));
    let _client = Client::start(&folder);
    let arrived = files.join("out.bin");
    eventually("it has the rest", || fs::metadata(&arrived).is_ok_and(|meta| meta.len() == data.len() as u64));
    support::same_file(&arrived, &data);
    let asked = rig.asked().split_off(before);
    let its = asked.first().unwrap();
    assert!(its.header("user-agent").is_some_and(|name| name.starts_with("BOINC client")), "{its:?}");
    assert_eq!((its.from(), its.target.as_str(), asked.len()), (MB, "/f?a=1&b=2", 1));
}
