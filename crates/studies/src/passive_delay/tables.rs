//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, PassiveDelayResult};
use super::paper::{Published, Question};
use crate::experiment::{Estimate, effects_table};
use wirestamp_report::Table;
use wirestamp_report::format::{NOTHING, count, duration, optional, percent};

impl PassiveDelayResult {
    /// The errors of a section's cells, and of the paper's.
    pub(super) fn errors(&self, question: Question) -> Table {
        let here = self.of_question(question).filter(|cell| cell.runs > 0).map(of_cell);
        let published = self.published.iter().filter(|row| row.question == question);
        Table::new(
            &format!(
                "Section {}: errors of delay and loss (T: tasks of a probe)",
                question.place()[0]
            ),
            &[
                "",
                "clocks apart",
                "true mean",
                "error of the min",
                "of the mean",
                "of the max",
                "lost",
                "count error",
            ],
            here.chain(published.map(of_paper)).collect(),
        )
    }

    /// Effects of frame size, load and tasks on the error of the mean.
    pub(super) fn effects(&self) -> Table {
        let on = "on the error of the mean delay, with its sign";
        effects_table(&[(on, &self.effects_on_mean_error)], |it| it.text(duration))
    }
}

/// A test in words.
fn name(question: Question, frame: u16, load: u32, tasks: u32, seconds: &str) -> String {
    match question {
        Question::Precision => format!("{frame} B, 2.5 %, {seconds} s"),
        Question::Frames => format!("{frame} B, {} %, {tasks} T", load / 10),
        Question::Duration => format!("{seconds} s"),
    }
}

fn of_cell(cell: &CellFindings) -> Vec<String> {
    let seconds = cell.seconds.to_string();
    let text = |error: Option<Estimate>| optional(error, |it| it.text(duration));
    vec![
        format!("here: {}", name(cell.question, cell.frame, cell.load, cell.tasks, &seconds)),
        "one clock".to_owned(),
        duration(cell.truth_ns[1]),
        text(cell.min_error_ns),
        text(cell.mean_error_ns),
        text(cell.max_error_ns),
        percent(cell.truly_lost, cell.sent),
        // By no packet where nothing is wrong.
        count(cell.lost.abs_diff(cell.truly_lost)),
    ]
}

fn of_paper(row: &Published) -> Vec<String> {
    let us = |us: f64| duration(us * 1e3);
    let seconds = row.seconds.to_string();
    vec![
        format!("paper: {}", name(row.question, row.frame, row.load, row.tasks, &seconds)),
        us(row.offset_us),
        NOTHING.to_owned(),
        optional(row.min_error_us, us),
        us(row.mean_error_us),
        us(row.max_error_us),
        NOTHING.to_owned(),
        format!("{} % by probe 1", row.own_loss_percent),
    ]
}
