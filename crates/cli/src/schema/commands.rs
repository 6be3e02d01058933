//! The commands whose documents have a schema.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use wirestamp_capture::tune;
#[cfg(feature = "studies")]
use wirestamp_studies::{Account, site::Outcome};

#[cfg(feature = "mesh")]
use crate::mesh::{lab as mesh_lab, pki};
#[cfg(feature = "studies")]
use crate::study;
use crate::{
    capture, clock, delay, demo, extcap, flows, lab, layers, reflect, restamp, send, stamp,
};

/// A command that prints a document.
pub(super) struct DocumentedCommand {
    /// Name of the schema.
    pub(super) name: &'static str,
    /// Arguments of the program.
    arguments: &'static str,
    /// Generates the schema.
    pub(super) schema: fn(SchemaGenerator) -> Schema,
}

impl DocumentedCommand {
    /// The command that prints a `T`.
    const fn printing<T: JsonSchema>(name: &'static str, arguments: &'static str) -> Self {
        Self { name, arguments, schema: SchemaGenerator::into_root_schema_for::<T> }
    }

    /// The command line.
    pub(super) fn line(&self) -> String {
        format!("wirestamp {} --json", self.arguments)
    }
}

/// All commands that print a document, by name.
pub(super) const COMMANDS: &[DocumentedCommand] = &[
    DocumentedCommand::printing::<capture::Summary>("capture", "capture"),
    DocumentedCommand::printing::<Vec<capture::InterfaceRow>>("capture-interfaces", "capture -D"),
    DocumentedCommand::printing::<Vec<capture::PairRow>>("capture-list", "capture --list"),
    DocumentedCommand::printing::<capture::Total>("capture-several", "capture -i A -i B"),
    DocumentedCommand::printing::<Vec<capture::SettingRow<'_>>>("capture-tune", "capture --tune"),
    DocumentedCommand::printing::<tune::Report>("capture-tune-restore", "capture --tune=restore"),
    DocumentedCommand::printing::<clock::Document>("clock", "clock"),
    DocumentedCommand::printing::<delay::Document<'_>>("delay", "delay"),
    DocumentedCommand::printing::<demo::DemoResult>("demo", "demo"),
    DocumentedCommand::printing::<extcap::Done>("extcap-install", "extcap install"),
    DocumentedCommand::printing::<extcap::Done>("extcap-remove", "extcap remove"),
    DocumentedCommand::printing::<flows::Document>("flows", "flows"),
    DocumentedCommand::printing::<lab::Removed>("lab-down", "lab down"),
    #[cfg(feature = "mesh")]
    DocumentedCommand::printing::<mesh_lab::MeshResult>("lab-mesh", "lab mesh"),
    DocumentedCommand::printing::<lab::TestBed>("lab-up", "lab up"),
    DocumentedCommand::printing::<layers::Document>("layers", "layers"),
    #[cfg(feature = "mesh")]
    DocumentedCommand::printing::<pki::Created<'_>>("pki-create", "pki create"),
    #[cfg(feature = "mesh")]
    DocumentedCommand::printing::<pki::IssuedFile<'_>>("pki-issue", "pki issue"),
    #[cfg(feature = "mesh")]
    DocumentedCommand::printing::<pki::List>("pki-list", "pki list"),
    #[cfg(feature = "mesh")]
    DocumentedCommand::printing::<pki::Revoked<'_>>("pki-revoke", "pki revoke"),
    #[cfg(feature = "mesh")]
    DocumentedCommand::printing::<pki::Rotated>("pki-rotate", "pki rotate"),
    #[cfg(feature = "mesh")]
    DocumentedCommand::printing::<pki::NewToken>("pki-token", "pki token"),
    DocumentedCommand::printing::<reflect::Document>("reflect", "reflect"),
    DocumentedCommand::printing::<restamp::Summary>("restamp", "restamp"),
    DocumentedCommand::printing::<super::List>("schema", "schema"),
    DocumentedCommand::printing::<send::Document>("send", "send"),
    DocumentedCommand::printing::<stamp::Members<'_>>("stamp", "stamp"),
    #[cfg(feature = "studies")]
    DocumentedCommand::printing::<Account>("study", "study NAME"),
    #[cfg(feature = "studies")]
    DocumentedCommand::printing::<Vec<Outcome>>("study-all", "study all"),
    #[cfg(feature = "studies")]
    DocumentedCommand::printing::<study::Index>("study-index", "study index FOLDER"),
    #[cfg(feature = "studies")]
    DocumentedCommand::printing::<study::List>("study-list", "study list"),
];
