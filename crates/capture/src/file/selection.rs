//! One interface of a capture file: `capture.pcapng#eth0`.

use std::path::{Path, PathBuf};

use super::interface::Interface;

/// The file and the interface of `path`: a path that does not exist and has a `#` names an interface of the file before
/// it, by its name or its number from 0. Each section of a file, and so each file of a folder, has its own numbers.
#[must_use]
pub fn split_interface(path: &Path) -> (PathBuf, Option<String>) {
    let split = || path.to_str().filter(|_| !path.exists())?.rsplit_once('#');
    match split() {
        Some((file, interface)) => (file.into(), Some(interface.to_owned())),
        None => (path.to_owned(), None),
    }
}

/// The interfaces whose packets are read: one, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Name or number of the one.
    requested: Option<String>,
    /// By the index of the interface.
    is_selected: Vec<bool>,
    /// Its number in its section.
    numbers: Vec<usize>,
}

impl Selection {
    pub(super) fn new(requested: Option<String>) -> Self {
        Self { requested, ..Self::default() }
    }

    /// Decides on the next interface of the file, which has this number in its section.
    pub(super) fn add(&mut self, number: usize, interface: &Interface) {
        self.numbers.push(number);
        self.is_selected.push(self.requested.as_ref().is_none_or(|requested| {
            interface.name.as_ref() == Some(requested) || number.to_string() == *requested
        }));
    }

    /// Whether the interface with this index is read.
    pub(super) fn has(&self, index: usize) -> bool {
        self.is_selected.get(index).copied().unwrap_or(false)
    }

    /// Why nothing was read: the requested interface is not there. None if it is.
    pub(super) fn missing(&self, all: &[Interface]) -> Option<String> {
        let requested = self.requested.as_ref().filter(|_| !self.is_selected.contains(&true))?;
        let known: Vec<_> = all
            .iter()
            .zip(&self.numbers)
            .map(|(it, number)| it.name.clone().unwrap_or_else(|| number.to_string()))
            .collect();
        Some(format!("it has no interface {requested}; its interfaces: {}", known.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_follows_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a#b");
        std::fs::write(&file, "").unwrap();
        assert_eq!(split_interface(&file), (file.clone(), None));
        let with = folder.path().join("a#b#eth0");
        assert_eq!(split_interface(&with), (file, Some("eth0".into())));
        assert_eq!(split_interface(Path::new("-")), ("-".into(), None));
    }

    #[test]
    fn interface_is_selected_by_name_or_number() {
        let all = [Interface::named("eth0"), Interface::named("eth1"), Interface::default()];
        let selection = |requested: Option<&str>| {
            let mut selection = Selection::new(requested.map(str::to_owned));
            all.iter().enumerate().for_each(|(number, it)| selection.add(number, it));
            selection
        };
        let selected = |requested| {
            let selection = selection(requested);
            (0..4).filter(|index| selection.has(*index)).collect::<Vec<_>>()
        };
        let found = ["eth1", "0", "2"].map(|name| selected(Some(name)));
        assert_eq!(found, [[1], [0], [2]].map(Vec::from));
        assert_eq!(selected(None), [0, 1, 2]);
        let missing = selection(Some("eth7")).missing(&all).expect("it is missing");
        assert_eq!(missing, "it has no interface eth7; its interfaces: eth0, eth1, 2");
        assert_eq!(selection(Some("2")).missing(&all), None);
        assert_eq!(selection(None).missing(&[]), None);
    }

    #[test]
    fn number_selects_an_interface_of_each_section() {
        let sections = [["eth0", "eth1"], ["eth2", "eth3"]];
        let selected = |requested: &str| {
            let mut selection = Selection::new(Some(requested.to_owned()));
            for (number, name) in sections.iter().flat_map(|names| names.iter().enumerate()) {
                selection.add(number, &Interface::named(name));
            }
            (0..4).filter(|index| selection.has(*index)).collect::<Vec<_>>()
        };
        assert_eq!(
            ["0", "1", "2", "eth2"].map(selected),
            [vec![0, 2], vec![1, 3], vec![], vec![2]]
        );
        let mut unnamed = Selection::new(Some("7".into()));
        let all = [Interface::default(), Interface::default()];
        all.iter().for_each(|interface| unnamed.add(0, interface));
        let missing = unnamed.missing(&all).expect("it is missing");
        assert_eq!(missing, "it has no interface 7; its interfaces: 0, 0");
    }
}
