//! Public key infrastructure of a mesh: its CA, and the certificates that it issues.
//!
//! A node creates its own key ([`Request`]); only the request is sent. A [`Token`] enrols a node once, for one key. A
//! node renews its certificate before it expires. Revocation takes effect at once, because servers check the serial
//! number of each caller ([`Authority::is_good`]).

mod authority;
mod certificate;
mod credentials;
mod error;
mod host;
mod register;
mod request;
mod serial;
mod subject;
mod token;

pub use authority::{Authority, LIFETIME};
pub use certificate::Issued;
pub use credentials::Credentials;
pub use error::{Error, Result};
pub use host::{Host, NotAHost};
pub use register::{Entry, UnusedToken};
pub use request::Request;
pub use serial::Serial;
pub use subject::{NotOfTheMesh, Role, Subject};
pub use token::{NotAToken, Token};
