//! The commands in documents and help texts are valid.

use std::fs;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::Arguments;

/// Documents with commands, below the root of the repository.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "docs/guide.md",
    "docs/mesh.md",
    "docs/ipfix.md",
    "docs/accuracy.md",
    "docs/results/README.md",
];

/// The commands of a text: lines that begin with `wirestamp`, its path or ssh, and the other commands of the line.
fn commands(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().map(|line| line.split(" # ").next().unwrap_or(line).trim());
    let starts = ["wirestamp ", "target/release/wirestamp ", "ssh "];
    let lines = lines.filter(|line| starts.iter().any(|start| line.starts_with(start)));
    let parts = lines.flat_map(|line| line.split(['|', '&', ';']));
    let words = parts.filter_map(shlex::split).map(|words| {
        let begin = words.iter().position(|word| word.ends_with("wirestamp"));
        let words = words.into_iter().skip(begin.unwrap_or(usize::MAX));
        words.take_while(|word| word != ">").collect::<Vec<_>>()
    });
    words.filter(|words| words.len() > 1).collect()
}

/// The help texts of a command and of all below it.
fn help_texts(command: &mut clap::Command) -> Vec<String> {
    let mut texts = vec![command.render_long_help().to_string()];
    texts.extend(command.get_subcommands_mut().flat_map(help_texts));
    texts
}

/// Asserts that the command line accepts the words. Values may be placeholders, such as TOKEN.
fn assert_valid(words: &[String], place: &str) {
    if let Err(error) = Arguments::try_parse_from(words) {
        let is_accepted =
            matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::DisplayHelp);
        assert!(is_accepted, "{place}: {words:?}: {error}");
    }
}

#[test]
fn commands_in_documents_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for name in DOCUMENTS {
        for words in commands(&fs::read_to_string(root.join(name)).unwrap()) {
            assert_valid(&words, name);
            count += 1;
        }
    }
    assert!(count > 40, "only {count} commands were found");
}

#[test]
fn commands_in_help_texts_are_valid() {
    let mut count = 0;
    for text in help_texts(&mut Arguments::command()) {
        for words in commands(&text) {
            assert_valid(&words, "help");
            count += 1;
        }
    }
    assert!(count > 40, "only {count} commands were found");
}
