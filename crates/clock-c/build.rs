//! Gives the shared library its soname.

fn main() {
    // A version with major number 0 may break its users with each minor number.
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    let minor = env!("CARGO_PKG_VERSION_MINOR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwirestamp_clock.so.{major}.{minor}");
    println!("cargo::rerun-if-changed=build.rs");
}
