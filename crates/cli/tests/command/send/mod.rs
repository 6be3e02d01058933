//! `wirestamp send`.

mod files;
mod live;
