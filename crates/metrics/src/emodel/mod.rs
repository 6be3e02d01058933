//! Quality of a telephone call: the E-models of ITU-T G.107 (06/2015) for narrowband, G.107.1 (06/2019) for wideband,
//! and G.107.2 (06/2019) for fullband.
//!
//! The [`Parameters`] of a call give a [`Rating`]: an R-factor from 0 (worst) to 93.2 (narrowband, all defaults), 129
//! (wideband) or 148 (fullband), and a MOS from 1 to 4.5. Equation and table numbers are those of G.107.
//!
//! The model is meant for planning. With measured delay and loss it rates the network as users with good handsets in
//! quiet rooms would, the defaults. Loud rooms and echoes are excluded unless their parameters are set.
//!
//! Wideband ratings are for calls without echo: R = 129 - Id - Ie-eff, where Id is that of the delay alone. The published
//! values are those of users with a handset (monotic listening).
//!
//! Fullband ratings have the same form: R = 148 - Id - Ie-eff, for random loss without noise and echo. The text of G.107.2 is
//! not public. The equations were taken from two programs that cite it and agree: `mos_calc_fb` of rtpengine
//! (`daemon/ssrc.c`), and a web service of QoE models (`eModelFullband`). They may have a common origin, and no published
//! example was found to compare with.
//!
//! | file | computes |
//! |---|---|
//! | `parameters.rs` | input parameters, table 2 |
//! | `impairments.rs` | signal-to-noise ratio Ro, simultaneous impairment Is, delay impairment Id: sections 7.2 to 7.4 |
//! | `codec.rs` | codecs and their impairment, ITU-T G.113 Appendices I, IV and V |
//! | `codecs.rs` | calls that change the codec |
//! | `scale.rs` | narrowband, wideband and fullband |
//! | `rating.rs` | R-factor, effective equipment impairment Ie-eff (section 7.5), MOS (Annex B) |

mod codec;
mod codecs;
mod impairments;
mod parameters;
mod rating;
mod scale;

#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;

pub use codec::{Codec, UnknownCodec};
pub use codecs::Codecs;
pub use parameters::Parameters;
pub use rating::Rating;
pub use scale::{Scale, mos_of};
