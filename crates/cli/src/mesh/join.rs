//! The token with which a node joins a mesh.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use wirestamp_mesh::pki::Token;

/// The token of a node, if it joins.
#[derive(Args)]
pub(super) struct JoinToken {
    /// Token for joining, printed by `wirestamp pki token` on the controller's machine. Other users see it in the list
    /// of processes
    #[arg(long, value_name = "TOKEN", env = "WIRESTAMP_TOKEN", hide_env_values = true)]
    token: Option<Token>,
    /// File with the token for joining
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl JoinToken {
    /// The token, if there is one.
    pub(super) fn read(self) -> anyhow::Result<Option<Token>> {
        let Some(file) = self.token_file else { return Ok(self.token) };
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        let token = text.trim().parse();
        Ok(Some(token.with_context(|| format!("cannot use the token in {}", file.display()))?))
    }
}
