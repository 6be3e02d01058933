//! What a build script does to have XDP programs: compiles them with clang and generates their
//! skeletons. A build script is a crate of its own and takes this file in by its path.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

/// Where the programs are, from any crate's folder.
const FOLDER: &str = "../../bpf";

/// Makes `NAME.skel.rs` in the output folder of `bpf/NAME.bpf.c`, for each of `programs`.
pub(crate) fn generate(programs: &[&str]) {
    println!("cargo::rerun-if-changed={FOLDER}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    // Debian keeps <asm/types.h> in the architecture's own folder, where clang does not look when
    // it compiles for BPF.
    let headers = format!("-I/usr/include/{arch}-linux-gnu");
    for program in programs {
        if let Err(error) = SkeletonBuilder::new()
            .source(format!("{FOLDER}/{program}.bpf.c"))
            // Version 3 of the instructions has atomic operations that return a value (Linux 5.12).
            .clang_args(["-Wall", "-Werror", "-mcpu=v3", headers.as_str()])
            .build_and_generate(out.join(format!("{program}.skel.rs")))
        {
            let help = "`make setup` installs what it needs";
            println!("cargo::error=bpf/{program}.bpf.c: {error:#}; {help}");
        }
    }
}
