//! The failure of a collector in the middle of a run.

use std::time::{Duration, Instant};

use anyhow::Context;

use super::nodes::Nodes;
use crate::output::Output;

/// Time after which the tasks of the killed collector move to others.
pub(super) const MOVE_AFTER: Duration = Duration::from_secs(2);

/// Kills the first collector at a time, and starts it again after its tasks have moved.
pub(super) struct Failure {
    collector: String,
    at: Instant,
    state: State,
}

enum State {
    Running,
    Killed,
    StartedAgain,
}

impl Failure {
    /// Plans the failure after a time from now on; none without a time.
    pub(super) fn after(time: Option<Duration>, nodes: &Nodes) -> anyhow::Result<Option<Self>> {
        let Some(time) = time else { return Ok(None) };
        let collector = nodes.first_collector().context("there is no separate collector")?;
        Ok(Some(Self { collector, at: Instant::now() + time, state: State::Running }))
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, nodes: &mut Nodes, output: Output) -> anyhow::Result<()> {
        let collector = &self.collector;
        match self.state {
            State::Running if Instant::now() >= self.at => {
                nodes.kill(collector)?;
                output.remark(format_args!("killed {collector}"));
                self.state = State::Killed;
            }
            State::Killed if nodes.has_moved(collector) => {
                nodes.start_again(collector)?;
                output
                    .remark(format_args!("the tasks of {collector} have moved; started it again"));
                self.state = State::StartedAgain;
            }
            _ => {}
        }
        Ok(())
    }

    /// The collector that was killed and replaced; none if this did not happen.
    pub(super) fn replaced(self) -> Option<String> {
        matches!(self.state, State::StartedAgain).then_some(self.collector)
    }
}
