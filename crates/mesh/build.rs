//! Generates Rust from `proto/` with a protocol buffers compiler written in Rust, so that none has to be installed.

use std::env;
use std::error::Error;

const FOLDER: &str = "proto";
const FILES: [&str; 4] =
    ["proto/counts.proto", "proto/flows.proto", "proto/mesh.proto", "proto/observations.proto"];
const KAFKA: &str = "proto/kafka.proto";
const PAGE: &str = "../../web/dist";

fn main() -> Result<(), Box<dyn Error>> {
    for folder in [FOLDER, PAGE] {
        println!("cargo::rerun-if-changed={folder}");
    }
    // `Duty` carries a secret: src/secret.rs implements its `Debug` without it.
    let services = tonic_prost_build::configure().build_transport(false).skip_debug(["Duty"]);
    let kafka = env::var_os("CARGO_FEATURE_KAFKA").map(|_| KAFKA);
    services.compile_fds(protox::compile(FILES.into_iter().chain(kafka), [FOLDER])?)?;
    Ok(())
}
