//! Makes Rust of the services in `proto/`, with a compiler of protocol buffers in Rust, so that none has to be
//! installed.

use std::error::Error;

const FOLDER: &str = "proto";
const FILES: [&str; 1] = ["proto/mesh.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    // What carries secrets is shown without them (src/secret.rs).
    let services = tonic_prost_build::configure().build_transport(false).skip_debug(["Duty"]);
    services.compile_fds(protox::compile(FILES, [FOLDER])?)?;
    Ok(())
}
