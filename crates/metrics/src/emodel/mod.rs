//! How good a narrow-band telephone call is: the E-model of ITU-T G.107 (06/2015).
//!
//! A call's [`Parameters`] give a [`Rating`], whose R-factor goes from 0 (unbearable) to 93.2 (all
//! defaults), and a mean opinion score from 1 to 4.5. Equation and table numbers are those of
//! G.107; they are given at each formula.
//!
//! The model is meant for planning. What is fed with measured delay and loss is how the network
//! would be judged by people who talk over it with good handsets in quiet rooms, the defaults; what a
//! loud room or an echo adds is not in it unless its parameter is set.
//!
//! | file | computes |
//! |---|---|
//! | `noise.rs` | the basic signal-to-noise ratio Ro, section 7.2 |
//! | `simultaneous.rs` | the simultaneous impairment Is, section 7.3 |
//! | `delay.rs` | the delay impairment Id, section 7.4 |
//! | `codec.rs` | codecs and what they cost, ITU-T G.113 Appendix I |
//! | `parameters.rs` | input parameters, table 2 |
//! | `rating.rs` | the R-factor, the effective equipment impairment Ie-eff (section 7.5), MOS (Annex B) |

mod codec;
mod delay;
mod noise;
mod parameters;
mod rating;
mod simultaneous;

#[cfg(test)]
mod tests;

pub use codec::{Codec, UnknownCodec};
pub use parameters::Parameters;
pub use rating::{Rating, mean_opinion_score};
