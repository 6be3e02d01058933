//! Builds the XDP programs that stamp frames, and those that tell what a stamp costs.

#[path = "../../bpf/skeleton.rs"]
mod skeleton;

fn main() {
    skeleton::generate(&["stamp", "redirect", "cost"]);
}
