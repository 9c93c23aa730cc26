//! Any target of `tests/support/fuzz_targets`, by the name in `PERSXFER_FUZZ_TARGET`, under libFuzzer (see `fuzz/run`).
#![no_main]

use std::sync::OnceLock;

#[path = "../../tests/support/fuzz/mod.rs"]
mod fuzz;
#[path = "../../tests/support/fuzz_targets/mod.rs"]
mod fuzz_targets;

static TARGET: OnceLock<fuzz::Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("PERSXFER_FUZZ_TARGET").expect("PERSXFER_FUZZ_TARGET names a target");
        fuzz_targets::named(&name)
    });
    (target.run)(data);
});
