//! Compiles the BPF programs that the module has to serve.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "counter.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    // Where Debian keeps <asm/types.h>.
    let headers = format!("-I/usr/include/{arch}-linux-gnu");
    let built = SkeletonBuilder::new()
        .source(SOURCE)
        .obj(out.join("counter.bpf.o"))
        .clang_args(["-Wall", "-Werror", "-mcpu=v3", headers.as_str()])
        .build();
    if let Err(error) = built {
        println!("cargo::error=vm/{SOURCE}: {error:#}; `make setup` installs what it needs");
    }
}
