//! How replicas are received and stamped.

use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{Method, PAIRS, StampSource, pair};

/// A reception method with a source of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Technique {
    pub(crate) method: Method,
    pub(crate) stamp: StampSource,
}

/// The methods, in the order of the paper's text. A tc program is none of them.
const METHODS: [Method; 6] = [
    Method::Recvmsg,
    Method::Recvmmsg,
    Method::Ring,
    Method::LibPcap,
    Method::Xdp,
    Method::XdpPass,
];

impl Technique {
    /// All that stamp in software.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let of = |method| PAIRS.iter().filter(move |pair| pair.method == method);
        let software = METHODS.into_iter().flat_map(of);
        let software = software.filter(|pair| pair.stamp != StampSource::Hardware);
        software.map(|pair| Self { method: pair.method, stamp: pair.stamp })
    }

    /// Whether this machine can do it on a link without a network card.
    pub(crate) fn works_here(self) -> bool {
        pair(self.method, self.stamp).is_ok_and(works_without_card)
    }

    /// Method and source as one word, fit for a file name.
    pub(crate) fn name(self) -> String {
        format!("{}:{}", self.method, self.stamp)
    }

    /// The technique of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|technique| technique.name() == name)
    }

    /// Remark on techniques that are not available on this machine; `None` if all are.
    pub(crate) fn missing() -> Option<String> {
        let missing: Vec<_> = Self::all().filter(|it| !it.works_here()).map(Self::name).collect();
        (!missing.is_empty()).then(|| {
            format!(
                "Left out, because this machine cannot do it: {}. An XDP program reads the counter only \
                 with the kernel module wirestamp (kmod/README.md).",
                missing.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn techniques_are_found_by_their_names() {
        let names: Vec<_> = Technique::all().map(Technique::name).collect();
        assert_eq!(names.len(), 12, "{names:?}");
        for technique in Technique::all() {
            assert_eq!(Technique::named(&technique.name()), Some(technique));
        }
        assert_eq!(Technique::named("ring"), None);
    }

    #[test]
    fn only_raw_stamps_of_a_program_can_be_missing() {
        let missing = Technique::all().filter(|it| !it.works_here());
        assert!(missing.map(Technique::name).all(|name| name == "xdp-pass:raw"));
    }
}
