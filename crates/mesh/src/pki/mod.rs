//! Who belongs to the mesh: an authority of its own, and the certificates that it signs.
//!
//! A node makes its key itself ([`Request`]); only the request travels. A node is let in by a [`Token`],
//! which works once, for one key; a program that holds a certificate renews it before it ends. What is revoked is
//! refused from then on, because whoever listens asks by its number whether a certificate is good
//! ([`Authority::is_good`]).

mod authority;
mod certificate;
mod credentials;
mod error;
mod host;
mod register;
mod request;
mod subject;
mod token;

pub use authority::{Authority, LIFETIME};
pub use certificate::{Issued, Serial};
pub use credentials::Credentials;
pub use error::{Error, Result};
pub use host::{Host, NotAHost};
pub use register::Entry;
pub use request::Request;
pub use subject::{NotOfTheMesh, Role, Subject};
pub use token::{NotAToken, Token};
