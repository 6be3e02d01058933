//! Tables of results in CSV and Parquet, and metrics for Prometheus ([`Families`]).
//!
//! A [`Table`] consists of any rows and a definition of each column:
//!
//! ```
//! use wirestamp_results::{Field, Table};
//!
//! struct Call { name: &'static str, mos: Option<f64> }
//! const FIELDS: &[Field<Call>] = &[
//!     Field::text("name", |call| Some(call.name.to_owned())),
//!     Field::real("mos", |call| call.mos),
//! ];
//! let table = Table::of(&[Call { name: "first", mos: Some(4.2) }], FIELDS);
//! assert_eq!(table.rows(), 1);
//! ```

#![forbid(unsafe_code)]

mod csv;
mod error;
mod families;
mod flows;
mod parquet;
mod table;
mod table_file;

pub use error::Error;
pub use families::{Families, Labels, TEXT, Value, delay_bounds, help, seconds};
pub use parquet::is_complete_parquet;
pub use table::{Field, Table};
pub use table_file::{TableFile, TableFormat};
