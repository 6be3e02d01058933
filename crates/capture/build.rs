//! Builds the XDP programs that stamp frames, those that tell what a stamp costs, and those that follow
//! packets through their host.

#[path = "../../bpf/skeleton.rs"]
mod skeleton;

fn main() {
    skeleton::generate(&["stamp", "redirect", "cost", "layers"]);
}
