//! Makes Rust of the messages in `proto/`, with a compiler of protocol buffers in Rust, so that none has to be
//! installed.

use std::error::Error;

const FOLDER: &str = "proto";
const FILES: [&str; 3] = ["proto/counts.proto", "proto/flows.proto", "proto/observations.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    prost_build::compile_fds(protox::compile(FILES, [FOLDER])?)?;
    Ok(())
}
