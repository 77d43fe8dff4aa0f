//! Passes the compiler's version to the crate, which registers workers with it as a runtime.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let printed = Command::new(compiler).arg("--version").output().map(|out| out.stdout).unwrap_or_default();
    // rustc 1.63.0 (4b91a6ea7 2022-08-08)
    let version = String::from_utf8_lossy(&printed).split(' ').nth(1).unwrap_or_default().to_string();
    let short = version.split('.').take(2).collect::<Vec<_>>().join(".");
    println!("cargo:rustc-env=LUBDUB_RUST_VERSION={short}");
}
