//! Skeletons of the BPF programs: their maps, constants and programs by name.
#![expect(
    unsafe_code,
    clippy::allow_attributes,
    clippy::undocumented_unsafe_blocks,
    unreachable_pub,
    reason = "generated from the object files by libbpf-cargo"
)]

pub(crate) mod checkpoints {
    include!(concat!(env!("OUT_DIR"), "/checkpoints.skel.rs"));
}
pub(crate) mod cost {
    include!(concat!(env!("OUT_DIR"), "/cost.skel.rs"));
}
pub(crate) mod layers {
    include!(concat!(env!("OUT_DIR"), "/layers.skel.rs"));
}
pub(crate) mod redirect {
    include!(concat!(env!("OUT_DIR"), "/redirect.skel.rs"));
}
pub(crate) mod stamp {
    include!(concat!(env!("OUT_DIR"), "/stamp.skel.rs"));
}
