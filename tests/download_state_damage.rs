//! State files that are damaged, foreign or gone: said with file and place, set aside, and never overwritten (design 5).

mod support;

use std::fs;

use support::names_in;
use support::{End, Rig, Served, World, noise};

const MB: usize = 1 << 20;

/// What a real BOINC client writes, in little; the names and hosts are made up.
const BOINCS: &str = "<client_state>
<host_info>
    <domain_name>box</domain_name>
</host_info>
<project>
    <master_url>https://alpha.example/boinc/</master_url>
    <project_name>Alpha</project_name>
</project>
<file>
    <name>basis_0042.dat</name>
    <nbytes>5242880.000000</nbytes>
    <max_nbytes>0.000000</max_nbytes>
    <md5_cksum>0f343b0931126a20f133d67c2b018a3b</md5_cksum>
    <status>0</status>
    <download_url>https://m1.alpha.example/dl/basis_0042.dat</download_url>
    <download_url>https://m2.alpha.example/dl/basis_0042.dat?a=1&amp;b=2</download_url>
    <persistent_file_xfer>
        <num_retries>3</num_retries>
        <first_request_time>1767218400.250000</first_request_time>
        <next_request_time>1767226211.750000</next_request_time>
        <time_so_far>41.500000</time_so_far>
        <last_bytes_xferred>2097152.000000</last_bytes_xferred>
        <is_upload>0</is_upload>
    </persistent_file_xfer>
</file>
</client_state>
";

fn rig() -> Rig {
    let served = Served::new(&noise(150, 2 * MB));
    Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Close) } else { served.reply(a) })
}

#[test]
fn a_boinc_clients_file_is_listed_and_never_written() {
    let w = World::new();
    fs::write(&w.state, BOINCS).unwrap();
    let listed = w.list(&[]);
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["name"], &listed[0]["num_retries"]), (&"basis_0042.dat".into(), &3.into()));
    assert_eq!(listed[0]["next_request_time"].as_f64(), Some(1_767_226_211.75));
    assert_eq!(listed[0]["urls"].as_array().map(Vec::len), Some(2));
    let rig = rig();
    w.download(&rig.url("/f")).run().exits(5).says(&["client_state.xml"]).says(&["boinc"]);
    w.px(["state", "forget", "basis_0042.dat"]).run().exits(5);
    assert_eq!(w.state_text(), BOINCS);
    assert_eq!(rig.count(), 0, "a request was sent");
    w.holds_nothing();
}

#[test]
fn the_samples_are_what_the_readme_says() {
    let sample = |name: &str| {
        let w = World::new();
        let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("state").join(name);
        fs::copy(&from, &w.state).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        w
    };
    for name in ["fresh.xml", "waiting.xml", "given_up.xml", "boinc_client.xml"] {
        let w = sample(name);
        let before = w.state_text();
        assert_eq!(w.list(&["--all"]).is_empty(), name == "fresh.xml", "{name}");
        w.px(["state", "list", "--all"]).run().exits(0);
        // The part files that a sample speaks of are not here, which `check` finds.
        w.px(["state", "check"]).run().exits_one_of(&[0, 3]);
        assert_eq!(w.state_text(), before, "{name} was written to");
    }
    let boincs = sample("boinc_client.xml").list(&[]);
    assert!(boincs.iter().any(|t| t["num_retries"].as_u64() > Some(0) && t["next_request_time"].is_number()));
    let damaged = sample("damaged.xml");
    damaged.px(["state", "check"]).run().exits(3);
    damaged.px(["state", "list"]).run().exits(5).says(&["client_state.xml"]);
}

#[test]
fn a_damaged_file_without_a_predecessor_is_named_with_its_place_and_left_alone() {
    let cut = &BOINCS[..BOINCS.len() / 2];
    for damage in [
        cut,
        "",
        "\0\0\0\0\0\0\0\0\0\0",
        "not xml at all",
        "<client_state>\n<file_info>\n<name>x</nam></client_state>\n",
    ] {
        let w = World::new();
        fs::write(&w.state, damage).unwrap();
        let rig = rig();
        let ran = w.download(&rig.url("/f")).run();
        ran.exits(5).says(&["client_state.xml"]);
        assert_eq!(w.state_text(), damage, "it was written to");
        assert_eq!(rig.count(), 0, "a request was sent for {damage:?}");
        let checked = w.px(["state", "check"]).run();
        checked.exits_one_of(&[3, 5]);
    }
}

#[test]
fn a_damaged_place_is_told_by_line() {
    let w = World::new();
    fs::write(
        &w.state,
        "<client_state>\n<file_info>\n    <name>a</name>\n    <nbytes>12</nbites>\n</file_info>\n</client_state>\n",
    )
    .unwrap();
    w.download(&rig().url("/f")).run().exits(5).says(&["line 4", ":4", "4:"]);
}

#[test]
fn the_predecessor_is_used_and_the_damaged_one_set_aside() {
    let w = World::new();
    let rig = rig();
    // Two writes at least, so that there is a predecessor.
    w.download(&rig.url("/f")).delays("1h", "1h").arg("--once").run().exits(4);
    w.download(&rig.url("/g")).out(Some(w.path("second"))).run().exits(0);
    assert!(w.state.with_file_name("client_state_prev.xml").exists());
    let half = w.state_text()[..w.state_text().len() / 2].to_owned();
    fs::write(&w.state, &half).unwrap();
    let ran = w.px(["state", "list", "--all"]).run();
    ran.exits(0).says(&["client_state.xml"]).says(&["damaged"]);
    w.download(&rig.url("/f")).delays("50ms", "100ms").run().exits(0);
    w.holds(&noise(150, 2 * MB));
    let names = names_in(w.state.parent().unwrap());
    assert!(names.iter().any(|n| n.contains(".damaged-")), "{names:?}");
    let aside = names.iter().find(|n| n.contains(".damaged-")).unwrap();
    assert_eq!(fs::read_to_string(w.state.with_file_name(aside)).unwrap(), half);
}

#[test]
fn a_next_file_left_by_a_crash_does_not_confuse() {
    for content in ["", "<client_state>\n<file_in"] {
        let w = World::new();
        let rig = rig();
        w.download(&rig.url("/f")).arg("--once").run().exits(4);
        fs::write(w.state.with_file_name("client_state_next.xml"), content).unwrap();
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&noise(150, 2 * MB));
    }
}

#[test]
fn a_state_file_that_is_gone_costs_no_right_byte() {
    let w = World::new();
    let rig = rig();
    w.download(&rig.url("/f")).arg("--once").run().exits(4);
    fs::remove_dir_all(w.state.parent().unwrap()).unwrap();
    fs::create_dir(w.state.parent().unwrap()).unwrap();
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&noise(150, 2 * MB));
}

#[test]
fn state_lands_in_the_xdg_folder_unless_told_otherwise() {
    let (mut w, rig) = (World::new(), rig());
    let xdg = w.path("xdg");
    // The world's own state file is what the flag says; `--state-file` cannot be left out of its commands, so the
    // environment is tried with a command of our own.
    w.state = xdg.join("persxfer/client_state.xml");
    let out = w.path("out.bin");
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_persxfer"))
        .args(["download", "--once", &rig.url("/f"), "-o"])
        .arg(&out)
        .env_clear()
        .env("HOME", w.path("home"))
        .env("XDG_STATE_HOME", &xdg)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(4), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(w.state.exists());
    assert_eq!(w.list(&[]).len(), 1);
}

#[test]
fn hostile_state_files_are_refused_within_limits() {
    let deep = format!("<client_state>\n{}{}</client_state>\n", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let entity = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaa\">]>\n<client_state>\n<file_info><name>&a;</name></file_info>\n</client_state>\n";
    let wide =
        format!("<client_state>\n<file_info><name>{}</name></file_info>\n</client_state>\n", "n".repeat(40 << 20));
    for text in [deep, entity.to_owned(), wide] {
        let w = World::new();
        fs::write(&w.state, &text).unwrap();
        w.download(&rig().url("/f")).run().exits(5).says(&["client_state.xml"]);
        assert_eq!(fs::metadata(&w.state).unwrap().len(), text.len() as u64);
    }
}
