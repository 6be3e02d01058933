//! Errors of conversions: counted, printed, and checked against limits.

use wirestamp_clock::{Span, Stamp, Time, Utc};

use super::Truth;

/// The stated coverage: fewer than one of ten thousand conversions is off by more than its bound.
const VIOLATIONS: f64 = 1e-4;

/// Conversions of one kind in one scenario.
pub(crate) struct Tally {
    name: String,
    violations: u32,
    worst: i64,
    sum_of_squares: f64,
    /// One for each conversion, in nanoseconds.
    bounds: Vec<i64>,
}

impl Tally {
    pub(crate) fn new(name: &str) -> Self {
        let (name, bounds) = (name.to_owned(), Vec::new());
        Self { name, violations: 0, worst: 0, sum_of_squares: 0.0, bounds }
    }

    /// Distance of a stamp from the truth.
    pub(crate) fn error_of(stamp: &Stamp, truth: &Truth) -> Span {
        (stamp.utc - Time::<Utc>::from_nanos(truth.utc)).abs()
    }

    #[expect(clippy::cast_precision_loss, reason = "relative error 2^-53")]
    pub(crate) fn add(&mut self, stamp: &Stamp, truth: &Truth) {
        let error_of = Self::error_of(stamp, truth);
        self.violations += u32::from(error_of > stamp.error);
        self.worst = self.worst.max(error_of.as_nanos());
        self.sum_of_squares += (error_of.as_nanos() as f64).powi(2);
        self.bounds.push(stamp.error.as_nanos());
    }

    /// Prints one line.
    pub(crate) fn report(&mut self) -> &mut Self {
        if self.bounds.is_empty() {
            return self;
        }
        let median = self.median();
        let max_bound = match self.max_bound() {
            i64::MAX => "unbounded".to_owned(),
            nanos => format!("{nanos} ns"),
        };
        println!(
            "{}: {} conversions, {} violations, worst error {} ns, RMS {:.1} ns, bound median \
             {median} ns, max {max_bound}",
            self.name,
            self.bounds.len(),
            self.violations,
            self.worst,
            self.rms(),
        );
        self
    }

    /// Asserts the coverage.
    pub(crate) fn assert_coverage(&mut self) -> &mut Self {
        let share = f64::from(self.violations) / self.conversions();
        assert!(share < VIOLATIONS, "{}: {} violations", self.name, self.violations);
        self
    }

    /// Asserts limits of the RMS error and of the largest bound, in nanoseconds.
    pub(crate) fn assert_limits(&mut self, rms: f64, bound: i64) -> &mut Self {
        assert!(self.rms() < rms, "{}: RMS {:.1} ns", self.name, self.rms());
        assert!(self.max_bound() <= bound, "{}: a bound of {} ns", self.name, self.max_bound());
        self
    }

    /// Asserts that the median bound is at most `bound` nanoseconds.
    pub(crate) fn assert_median(&mut self, bound: i64) -> &mut Self {
        let median = self.median();
        assert!(median <= bound, "{}: a bound of {median} ns in the middle", self.name);
        self
    }

    fn rms(&self) -> f64 {
        (self.sum_of_squares / self.conversions()).sqrt()
    }

    fn median(&mut self) -> i64 {
        let middle = self.bounds.len() / 2;
        *self.bounds.select_nth_unstable(middle).1
    }

    fn max_bound(&self) -> i64 {
        self.bounds.iter().copied().max().unwrap_or(0)
    }

    fn conversions(&self) -> f64 {
        f64::from(u32::try_from(self.bounds.len()).unwrap())
    }
}
