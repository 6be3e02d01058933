//! Builds the BPF programs that stamp frames, measure the cost of a stamp, and follow packets through their host.

#[path = "../../bpf/skeleton.rs"]
mod skeleton;

fn main() {
    skeleton::generate(&["stamp", "redirect", "cost", "checkpoints", "layers"]);
}
