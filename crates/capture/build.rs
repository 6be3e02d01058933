//! Builds the XDP programs that stamp frames.

#[path = "../../bpf/skeleton.rs"]
mod skeleton;

fn main() {
    skeleton::generate(&["stamp", "redirect"]);
}
