//! The results of a study that the index page shows.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::Outcome;
use crate::account::{Account, Making};
use crate::experiment::{Claim, Claimant};
use crate::studies::{Entry, STUDIES};

/// A study on the index page.
pub(super) struct Card {
    /// Name of its report, without `.html`.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) paper: String,
    pub(super) has_mesh: bool,
    /// Results, or why it could not be run.
    pub(super) result: Result<Results, String>,
}

/// Results of a study: a part of its JSON document.
#[derive(Deserialize)]
pub(super) struct Results {
    #[serde(flatten)]
    pub(super) making: Making,
    pub(super) claims: Vec<Claim>,
}

impl Card {
    /// The cards of these outcomes.
    pub(super) fn of_outcome(outcome: &Outcome) -> Self {
        let results = |account: &Account| Results {
            making: account.making.clone(),
            claims: account.claims.clone(),
        };
        let error = || outcome.error().unwrap_or_default().to_owned();
        Self {
            name: outcome.study.to_owned(),
            title: title(outcome.about),
            paper: outcome.paper.to_owned(),
            has_mesh: false,
            result: outcome.account().map(results).ok_or_else(error),
        }
    }

    /// The cards of the documents `NAME.json` in a folder, in the order of [`STUDIES`].
    ///
    /// # Errors
    /// When a document cannot be read.
    pub(super) fn saved(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let names = STUDIES.iter().flat_map(|study| [(study, false), (study, true)]);
        let names = names.filter(|(study, has_mesh)| !has_mesh || study.has_mesh());
        let cards = names.map(|(study, has_mesh)| Self::saved_of(folder, study, has_mesh));
        cards.filter_map(Result::transpose).collect()
    }

    /// The cards of the documents of studies with a mesh in a folder.
    ///
    /// # Errors
    /// When a document cannot be read.
    pub(super) fn saved_with_mesh(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let mut cards = Self::saved(folder)?;
        cards.retain(|card| card.has_mesh);
        Ok(cards)
    }

    /// The card of a document in a folder; none if there is no such document.
    fn saved_of(folder: &Path, study: &Entry, has_mesh: bool) -> anyhow::Result<Option<Self>> {
        let (suffix, words) =
            if has_mesh { ("-mesh", ", with probes of a mesh") } else { ("", "") };
        let name = format!("{}{suffix}", study.name);
        let file = folder.join(&name).with_extension("json");
        if !file.exists() {
            return Ok(None);
        }
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut results: Results = serde_json::from_slice(&text)
            .with_context(|| format!("{} is not the document of a study", file.display()))?;
        // Documents of earlier versions have the claimant only in the sentence.
        for claim in &mut results.claims {
            if claim.sentence.starts_with(Claimant::Project.words()) {
                claim.by = Claimant::Project;
            }
        }
        Ok(Some(Self {
            name,
            title: title(study.about) + words,
            paper: study.paper.to_owned(),
            has_mesh,
            result: Ok(results),
        }))
    }
}

/// The subject of a study, with a capital letter.
fn title(about: &str) -> String {
    let mut letters = about.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
