//! Gives the shared library its soname.

fn main() {
    // A version of which the first number is 0 may break its users with the second.
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    let minor = env!("CARGO_PKG_VERSION_MINOR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwirestamp_clock.so.{major}.{minor}");
    println!("cargo::rerun-if-changed=build.rs");
}
