//! Builds the XDP program that makes live frames.

#[path = "../../bpf/skeleton.rs"]
mod skeleton;

fn main() {
    skeleton::generate(&["generate"]);
}
