//! Has the dashboard taken in anew when it was built anew.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
