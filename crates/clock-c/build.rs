//! Gives the shared library its soname.

fn main() {
    // With major version 0, each minor version may be incompatible.
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    let minor = env!("CARGO_PKG_VERSION_MINOR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwirestamp_clock.so.{major}.{minor}");
    println!("cargo::rerun-if-changed=build.rs");
}
