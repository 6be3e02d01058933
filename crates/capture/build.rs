//! Compiles the XDP program with clang and generates its skeleton.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

const PROGRAM: &str = "../../bpf/stamp.bpf.c";
const HEADER: &str = "../../bpf/filter.h";

fn main() {
    println!("cargo::rerun-if-changed={PROGRAM}");
    println!("cargo::rerun-if-changed={HEADER}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    // Debian keeps <asm/types.h> in the architecture's own folder, where clang does not look when
    // it compiles for BPF.
    let headers = format!("-I/usr/include/{arch}-linux-gnu");
    if let Err(error) = SkeletonBuilder::new()
        .source(PROGRAM)
        .clang_args(["-Wall", "-Werror", headers.as_str()])
        .build_and_generate(out.join("stamp.skel.rs"))
    {
        println!("cargo::error=bpf/stamp.bpf.c: {error:#}; `make setup` installs what it needs");
    }
}
