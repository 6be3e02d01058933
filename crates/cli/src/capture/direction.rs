//! Direction of captured packets (`-Q`).

use clap::ValueEnum;
use wirestamp_capture::Method;

use crate::usage::usage;

/// Direction of captured packets.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    In,
    Out,
    Inout,
}

impl Direction {
    /// Rejects outgoing packets with a method that captures received packets only.
    pub(crate) fn check(self, method: Method) -> anyhow::Result<()> {
        let name = match self {
            Self::Out => "out",
            Self::Inout => "inout",
            Self::In => return Ok(()),
        };
        if method.takes_outgoing() {
            return Ok(());
        }
        Err(usage(format!(
            "-Q {name}: method {method} captures received packets only; use -Q in, or method ring, recvmsg, recvmmsg \
             or libpcap"
        )))
    }
}

impl From<Direction> for wirestamp_capture::Direction {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::In => Self::In,
            Direction::Out => Self::Out,
            Direction::Inout => Self::Inout,
        }
    }
}

/// The options that add sent packets to those that `method` receives.
pub(crate) fn with_sent_packets(method: Method) -> &'static str {
    if method.takes_outgoing() { "-Q inout" } else { "-Q inout --method ring" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_only_receive_have_no_outgoing_packets() {
        for method in [Method::Xdp, Method::XdpPass, Method::TcPass, Method::TracePass] {
            Direction::In.check(method).unwrap();
            for (direction, name) in [(Direction::Out, "-Q out:"), (Direction::Inout, "-Q inout:")]
            {
                let error = direction.check(method).unwrap_err();
                assert!(crate::usage::is_usage(&error), "{error}");
                assert!(error.to_string().contains(name), "{error}");
                assert!(error.to_string().contains("use -Q in, or method ring"), "{error}");
            }
            assert!(with_sent_packets(method).contains("--method ring"));
        }
        for method in [Method::Ring, Method::Recvmsg, Method::Recvmmsg, Method::LibPcap] {
            Direction::Inout.check(method).unwrap();
            assert_eq!(with_sent_packets(method), "-Q inout");
        }
    }
}
