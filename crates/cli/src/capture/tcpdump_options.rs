//! Options of tcpdump that change nothing here, and those that have no meaning here.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};

use crate::usage::usage;

/// Names of options that change nothing. Numbers of TCP are absolute (`-S`), names of hosts are not printed (`-f`, `-N`),
/// checksums are not verified (`-K`), and BGP, 802.11s and NFS are not decoded (`-b`, `-H`, `-u`). `-O` would only slow the filter
/// down.
static ACCEPTED: [(&str, &str); 8] = [
    ("-b", ""),
    ("-f", ""),
    ("-H", ""),
    ("-K", "dont-verify-checksums"),
    ("-N", ""),
    ("-O", "no-optimize"),
    ("-S", "absolute-tcp-sequence-numbers"),
    ("-u", ""),
];

/// An option without a meaning here.
struct Refused {
    name: &'static str,
    /// Empty without a long name.
    long: &'static str,
    takes_value: bool,
    /// The reason, and the next step.
    why: &'static str,
}

static REFUSED: [Refused; 13] = [
    refused(
        "-E",
        "",
        true,
        "ESP is not decrypted; write the packets with -w, and decrypt them in Wireshark",
    ),
    refused(
        "-I",
        "monitor-mode",
        false,
        "monitor mode is not supported; capture with `tcpdump -I -w FILE`, and read the file with -r",
    ),
    refused("-j", "time-stamp-type", true, "stamps are chosen with --stamp; --list shows them"),
    refused(
        "-J",
        "list-time-stamp-types",
        false,
        "use --list, which shows the stamps of each method",
    ),
    refused(
        "-L",
        "list-data-link-types",
        false,
        "each interface has one link type here; leave it out",
    ),
    refused(
        "-m",
        "",
        true,
        "SNMP is not decoded; write the packets with -w, and use `tshark -r FILE`",
    ),
    refused(
        "-M",
        "",
        true,
        "TCP-MD5 is not verified; write the packets with -w, and use `tcpdump -M SECRET -r FILE`",
    ),
    refused(
        "-P",
        "",
        false,
        "its meaning depends on the system; files are pcapng without it, and -Q chooses the direction",
    ),
    refused(
        "-T",
        "",
        true,
        "`wirestamp flows` finds RTP and SIP automatically; for other protocols use `tshark -d`",
    ),
    refused("-V", "", true, "-r reads the captures of a folder as one; give it the folder"),
    refused("-y", "linktype", true, "each interface has one link type here; leave it out"),
    refused(
        "-z",
        "",
        true,
        "no command is run after each file; --zstd compresses files while they are written",
    ),
    refused(
        "--immediate-mode",
        "immediate-mode",
        false,
        "use -U to write each packet at once, and --method recvmsg to receive each at once",
    ),
];

const fn refused(
    name: &'static str,
    long: &'static str,
    takes_value: bool,
    why: &'static str,
) -> Refused {
    Refused { name, long, takes_value, why }
}

/// The options of tcpdump that have no effect.
pub(super) struct TcpdumpOptions {
    refused: Option<&'static Refused>,
}

impl TcpdumpOptions {
    /// Rejects an option without a meaning.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self.refused {
            Some(Refused { name, why, .. }) => Err(usage(format!("{name}: {why}"))),
            None => Ok(()),
        }
    }
}

impl clap::Args for TcpdumpOptions {
    fn augment_args(command: Command) -> Command {
        let accepted = ACCEPTED.iter().map(|&(name, long)| hidden(name, long, false));
        let refused = REFUSED.iter().map(|it| hidden(it.name, it.long, it.takes_value));
        command.args(accepted.chain(refused))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// An option that --help does not list.
fn hidden(name: &'static str, long: &'static str, takes_value: bool) -> Arg {
    let action = if takes_value { ArgAction::Append } else { ArgAction::Count };
    let option = Arg::new(name).hide(true).action(action);
    let option = if long.is_empty() { option } else { option.long(long) };
    match name.chars().nth(1) {
        Some(letter) if letter != '-' => option.short(letter),
        _ => option,
    }
}

impl FromArgMatches for TcpdumpOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given =
            |option: &&Refused| matches.value_source(option.name) == Some(ValueSource::CommandLine);
        Ok(Self { refused: REFUSED.iter().find(is_given) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
