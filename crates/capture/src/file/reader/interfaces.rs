//! The interfaces of a capture file while it is read.

use crate::CaptureLoss;
use crate::file::interface::Interface;
use crate::file::selection::Selection;

/// The interfaces of all sections so far.
#[derive(Default)]
pub(super) struct Interfaces {
    pub(super) all: Vec<Interface>,
    /// Index of the section's first interface: a section numbers its interfaces from 0.
    pub(super) section: usize,
    /// Losses not yet returned.
    pub(super) missed: Vec<CaptureLoss>,
    pub(super) selection: Selection,
}

impl Interfaces {
    pub(super) fn add(&mut self, interface: Interface) {
        self.selection.add(self.all.len() - self.section, &interface);
        self.all.push(interface);
    }

    /// Those whose packets are read.
    pub(super) fn selected(&self) -> impl Iterator<Item = &Interface> {
        let all = self.all.iter().enumerate();
        all.filter(|(index, _)| self.selection.has(*index)).map(|(_, interface)| interface)
    }

    /// Index of interface `id` of the section.
    pub(super) fn index(&self, id: u32) -> Result<usize, String> {
        let index = self.section + id as usize;
        if index < self.all.len() {
            Ok(index)
        } else {
            Err("a packet of an unknown interface".into())
        }
    }
}
