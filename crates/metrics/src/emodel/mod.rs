//! Quality of a narrow-band telephone call: the E-model of ITU-T G.107 (06/2015).
//!
//! The [`Parameters`] of a call give a [`Rating`]: an R-factor from 0 (worst) to 93.2 (all defaults), and a MOS from 1
//! to 4.5. Equation and table numbers are those of G.107.
//!
//! The model is meant for planning. With measured delay and loss it rates the network as users with good handsets in
//! quiet rooms would, the defaults. Loud rooms and echoes are excluded unless their parameters are set.
//!
//! | file | computes |
//! |---|---|
//! | `parameters.rs` | input parameters, table 2 |
//! | `impairments.rs` | signal-to-noise ratio Ro, simultaneous impairment Is, delay impairment Id: sections 7.2 to 7.4 |
//! | `codec.rs` | codecs and their impairment, ITU-T G.113 Appendix I |
//! | `rating.rs` | R-factor, effective equipment impairment Ie-eff (section 7.5), MOS (Annex B) |

mod codec;
mod impairments;
mod parameters;
mod rating;

#[cfg(test)]
mod tests;

pub use codec::{Codec, UnknownCodec};
pub use parameters::Parameters;
pub use rating::{Rating, mos_of};
