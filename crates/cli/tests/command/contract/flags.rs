//! Commands, flags, arguments and possible values, as `--help` prints them.

use super::{Names, compare_all};
use crate::common::run;

#[test]
fn commands_and_flags_keep_their_names() {
    let mut found = Names::new();
    collect(&[], &mut found);
    // So that a snapshot holds for builds with and without Kafka.
    let (kafka, others): (Names, Names) =
        found.into_iter().partition(|name| name.contains("kafka"));
    compare_all(
        if cfg!(feature = "mesh") { "flags.txt" } else { "flags-without-mesh.txt" },
        &others,
    );
    if cfg!(feature = "kafka") {
        compare_all("flags-kafka.txt", &kafka);
    }
}

fn collect(command: &[&str], found: &mut Names) {
    let output = run(&[command, &["--help"]].concat());
    let help = String::from_utf8(output.stdout).unwrap();
    let name = ["wirestamp", &command.join(" ")].join(" ").trim_end().to_owned();
    let mut heading = "";
    let mut latest = String::new();
    for line in help.lines() {
        if !line.starts_with(' ') {
            heading = line;
            continue;
        }
        let text = line.trim_start();
        let term = text.split("  ").next().unwrap();
        let indent = line.len() - text.len();
        if heading == "Commands:" && indent == 2 {
            found.insert(format!("{name} {term}"));
            if term != "help" {
                collect(&[command, &[term]].concat(), found);
            }
        } else if heading != "Usage:"
            && indent <= 6
            && text.starts_with(['-', '<', '['])
            && indent >= 2
        {
            latest = format!("{name} {term}");
            found.insert(latest.clone());
        }
        if let Some(values) = text.split("[possible values: ").nth(1) {
            let values = values.trim_end_matches(']').split(", ");
            found.extend(values.map(|value| format!("{latest} = {value}")));
        }
    }
}
