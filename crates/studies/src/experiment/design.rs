//! Factors of an experiment, and the order of its runs.

use serde::{Deserialize, Serialize};

/// An experiment as data: a full factorial design with repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// Name of the experiment and of its files.
    pub name: String,
    /// Varied factors; empty for a single repeated cell.
    pub factors: Vec<Factor>,
    /// How often each cell is run.
    pub repetitions: u32,
    /// Other parameters of a run: name and value.
    pub constants: Vec<(String, String)>,
}

/// A varied factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Name of the factor.
    pub name: String,
    /// Its levels.
    pub levels: Vec<String>,
}

impl Factor {
    /// A factor with its levels.
    #[must_use]
    pub fn new<'a>(name: &str, levels: impl IntoIterator<Item = &'a str>) -> Self {
        Self { name: name.to_owned(), levels: levels.into_iter().map(str::to_owned).collect() }
    }
}

/// A combination of levels: for each factor the index of its level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell(pub Vec<usize>);

/// One run: repetition and cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunId {
    /// From 0.
    pub repetition: u32,
    /// Which of [`Design::cells`].
    pub cell: usize,
}

impl Design {
    /// Every combination of levels, those of the last factor changing first.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let with = |cells: Vec<Cell>, factor: &Factor| {
            let levels = 0..factor.levels.len();
            let extended = |cell: &Cell| {
                let cell = cell.0.clone();
                levels.clone().map(move |level| Cell([cell.clone(), vec![level]].concat()))
            };
            cells.iter().flat_map(extended).collect()
        };
        self.factors.iter().fold(vec![Cell(Vec::new())], with)
    }

    /// The order of all runs. Each repetition runs all cells, in a random order of its own by `seed`. So a drift
    /// affects all cells equally, and an interrupted experiment is balanced up to its last complete repetition
    /// (randomised complete blocks: Box, Hunter and Hunter, "Statistics for Experimenters", chapter 4).
    #[must_use]
    pub fn order(&self, seed: u64) -> Vec<RunId> {
        let mut random = fastrand::Rng::with_seed(seed);
        let cells = self.cells().len();
        let block = |repetition| {
            let mut cells: Vec<_> = (0..cells).collect();
            random.shuffle(&mut cells);
            cells.into_iter().map(move |cell| RunId { repetition, cell })
        };
        (0..self.repetitions).flat_map(block).collect()
    }

    /// The levels of a cell in words.
    #[must_use]
    pub fn levels(&self, cell: &Cell) -> Vec<&str> {
        let levels = self.factors.iter().zip(&cell.0);
        levels.filter_map(|(factor, level)| factor.levels.get(*level).map(String::as_str)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(repetitions: u32) -> Design {
        let factors = vec![Factor::new("a", ["x", "y"]), Factor::new("b", ["1", "2", "3"])];
        Design { name: "test".to_owned(), factors, repetitions, constants: Vec::new() }
    }

    #[test]
    fn cells_are_all_combinations() {
        let design = design(1);
        let words: Vec<_> =
            design.cells().iter().map(|cell| design.levels(cell).concat()).collect();
        assert_eq!(words, ["x1", "x2", "x3", "y1", "y2", "y3"]);
        assert_eq!(Design { factors: Vec::new(), ..design }.cells(), [Cell(Vec::new())]);
    }

    #[test]
    fn every_repetition_has_every_cell_once_and_the_seed_makes_the_order() {
        let design = design(20);
        let order = design.order(7);
        for (block, repetition) in order.chunks(6).zip(0..) {
            assert!(block.iter().all(|turn| turn.repetition == repetition));
            let mut cells: Vec<_> = block.iter().map(|turn| turn.cell).collect();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3, 4, 5]);
        }
        assert_eq!(order, design.order(7));
        assert_ne!(order, design.order(8));
    }
}
