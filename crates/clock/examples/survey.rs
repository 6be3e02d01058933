//! Prints the survey of this machine's sources as JSON, with the name of the emulator that runs this program.
//! `tools/test-aarch64` runs it: a program cannot detect the emulator there.

fn main() -> serde_json::Result<()> {
    let emulator = std::env::args().nth(1);
    let sources = wirestamp_clock::survey().sources;
    let document = serde_json::json!({ "emulated_by": emulator, "sources": sources });
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}
