//! The files of the lab: the CA, the tasks and the viewer's credentials.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use wirestamp_mesh::pki::{Authority, Credentials, Request, Role, Subject, Token};

/// Validity of a token: enough for a node to start.
const TOKEN_VALIDITY: SignedDuration = SignedDuration::from_mins(10);

/// The files of the mesh, in one folder.
pub(in crate::mesh::lab) struct Files<'a>(pub(in crate::mesh::lab) &'a Path);

/// What the nodes join with.
pub(super) struct Joining {
    /// A token for each probe.
    pub(super) probes: Vec<Token>,
    /// A token for each collector.
    pub(super) collectors: Vec<Token>,
    pub(super) viewer: Credentials,
}

impl Files<'_> {
    pub(super) fn authority(&self) -> PathBuf {
        self.0.join("authority.sqlite")
    }

    pub(super) fn tasks(&self) -> PathBuf {
        self.0.join("tasks.toml")
    }

    /// The credentials file of the viewer.
    pub(in crate::mesh::lab) fn viewer(&self) -> PathBuf {
        self.0.join("viewer.pem")
    }

    /// Creates the CA and the task file. Returns tokens for the probes and collectors, and the viewer's credentials.
    pub(super) fn create(
        &self,
        tasks: &str,
        probes: impl Iterator<Item = &'static str>,
        collectors: &[String],
    ) -> anyhow::Result<Joining> {
        let now = Timestamp::from_second(Timestamp::now().as_second())?;
        let mut authority = Authority::create(&self.authority(), now)?;
        let subject = |name: &str, role| anyhow::Ok(Subject { name: name.parse()?, role });
        let mut token = |name: &str, role| {
            anyhow::Ok(authority.token(&subject(name, role)?, TOKEN_VALIDITY, now)?)
        };
        let probes = probes.map(|name| token(name, Role::Probe)).collect::<Result<_, _>>()?;
        let collectors = collectors.iter().map(|name| token(name, Role::Collector));
        let collectors = collectors.collect::<Result<_, _>>()?;
        let request = Request::new()?;
        let viewer = subject("viewer", Role::Viewer)?;
        let issued = authority.issue(&viewer, &request.pem()?, &[], now)?;
        let viewer = Credentials::new(&request, &issued);
        viewer.write(&self.viewer()).context("cannot write")?;
        fs::write(self.tasks(), tasks).context("cannot write the tasks")?;
        Ok(Joining { probes, collectors, viewer })
    }
}
