//! `wirestamp pki`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use wirestamp_mesh::Name;
use wirestamp_mesh::pki::{Authority, Credentials, Entry, Request, Role, Subject};

use crate::output::{Output, plural};
use crate::table::table;

#[derive(Args)]
#[command(after_help = "\
The authority is one file, with private keys in it: keep it on the controller's machine, and a copy
of it where nobody else gets at it. Nodes of the mesh know each other by what it signs, and by
nothing else. A certificate is good for 90 days.

Examples:
  wirestamp pki create
  wirestamp pki token roof                          # lets a probe of this name in, once
  wirestamp pki issue ann --role viewer -o ann.pem  # a certificate for a person or a program
  wirestamp pki revoke roof")]
pub(crate) struct Arguments {
    /// The authority's file
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        default_value = "/var/lib/wirestamp/authority.sqlite"
    )]
    authority: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a new authority
    Create,
    /// Make a token that lets a node in, once
    Token {
        /// The node's name; certificates that it has are revoked when it uses the token
        name: Name,
        /// What it may do: probe or collector
        #[arg(long, value_name = "ROLE", default_value_t = Role::Probe, value_parser = node)]
        role: Role,
        /// How long the token is good, as 30m or 2h
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = lifetime)]
        lifetime: SignedDuration,
    },
    /// Sign a certificate for somebody, and write it with a new key to a file
    Issue {
        /// The name
        name: Name,
        /// What they may do: probe, collector, controller, operator or viewer
        #[arg(long, value_name = "ROLE")]
        role: Role,
        /// The file: key, certificate, and the certificates of the authority, in PEM
        #[arg(short = 'o', long = "output", value_name = "FILE")]
        file: PathBuf,
        /// A domain or address by which browsers call it; may be given more than once
        #[arg(long, value_name = "NAME", value_parser = also_known_as)]
        also: Vec<String>,
    },
    /// Show which certificates were signed, which are good, and whom tokens can let in
    List,
    /// Take back all certificates and tokens of a name
    Revoke {
        /// The name
        name: Name,
        /// Only those of this role
        #[arg(long, value_name = "ROLE")]
        role: Option<Role>,
    },
    /// Make a new key, which signs in 90 days, when every node has learned of it by renewing
    Rotate {
        /// Let it sign at once, and take back everything that older keys have signed: every node has to be
        /// let in again. For when a key was lost to somebody else
        #[arg(long)]
        at_once: bool,
    },
}

/// The role of what is let in by a token.
fn node(text: &str) -> Result<Role, String> {
    match text.parse()? {
        role @ (Role::Probe | Role::Collector) => Ok(role),
        role => Err(format!(
            "tokens are for probes and collectors: `wirestamp pki issue` makes the certificate of the {role}"
        )),
    }
}

fn lifetime(text: &str) -> Result<SignedDuration, String> {
    let time: SignedDuration = text.parse().map_err(|_| "expected a time such as 30m or 2h")?;
    let longest = SignedDuration::from_hours(30 * 24);
    if (SignedDuration::from_secs(1)..=longest).contains(&time) {
        Ok(time)
    } else {
        Err("a token is good for a second at the least and 30 days at the most".to_owned())
    }
}

/// A domain or an address.
fn also_known_as(text: &str) -> Result<String, String> {
    // One label may be any, in front of others (RFC 6125 section 6.4.3).
    let domain = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |it: &str| it.parse::<Name>().is_ok();
    if text.parse::<IpAddr>().is_ok() || (text.len() < 254 && domain.split('.').all(is_label)) {
        Ok(text.to_owned())
    } else {
        Err("expected a domain in lower case or an address".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let path = &arguments.authority;
    // Certificates count in seconds.
    let now = Timestamp::from_second(Timestamp::now().as_second())?;
    match &arguments.action {
        Action::Create => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            }
            Authority::create(path, now)?;
            output.result(&Made { authority: path }, |it| {
                format!("made {}; keep it to yourself\n", it.authority.display())
            })?;
        }
        Action::Token { name, role, lifetime } => {
            let subject = Subject { name: name.clone(), role: *role };
            let token = Authority::open(path)?.token(&subject, *lifetime, now)?.to_string();
            let expires = now.checked_add(*lifetime)?;
            output
                .result(&Invitation { token, subject, expires }, |it| format!("{}\n", it.token))?;
            output.remark(format!("good once, until {expires}"));
        }
        Action::Issue { name, role, file, also } => {
            let subject = Subject { name: name.clone(), role: *role };
            let written = issue(&mut Authority::open(path)?, subject, file, also, now)?;
            output.result(&written, |it| {
                let file = it.file.display();
                format!(
                    "{file} has key and certificate of {}, good until {}\n",
                    it.subject, it.expires
                )
            })?;
        }
        Action::List => {
            let authority = Authority::open(path)?;
            let certificates = authority.entries()?;
            let certificates = certificates.iter().map(|entry| Listed::new(entry, now)).collect();
            let invited = authority.invited(now)?;
            let tokens = invited.into_iter().map(|(subject, expires)| Invited { subject, expires });
            output.result(&List { certificates, tokens: tokens.collect() }, list)?;
        }
        Action::Revoke { name, role } => {
            let revoked = Authority::open(path)?.revoke(name, *role, now)?;
            output.result(&Revoked { name, revoked }, |it| {
                format!(
                    "{}: took back {}\n",
                    it.name,
                    plural(it.revoked, "certificate or token", "certificates and tokens")
                )
            })?;
        }
        Action::Rotate { at_once } => {
            let mut authority = Authority::open(path)?;
            let signs_from = if *at_once {
                authority.start_anew(now).map(|()| now)?
            } else {
                authority.rotate(now)?
            };
            output.result(&Rotated { signs_from }, |it| {
                format!("made a new key, which signs from {} on\n", it.signs_from)
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn issue<'a>(
    authority: &mut Authority,
    subject: Subject,
    file: &'a Path,
    also_known_as: &[String],
    now: Timestamp,
) -> anyhow::Result<Written<'a>> {
    // Nothing is signed that cannot be written.
    Credentials::can_be_written(file).context("cannot write")?;
    let request = Request::new()?;
    let issued = authority.issue(&subject, &request.pem()?, also_known_as, now)?;
    Credentials::new(&request, &issued).write(file).context("cannot write")?;
    Ok(Written { subject, file, serial: issued.serial.to_string(), expires: issued.expires })
}

#[derive(Serialize)]
struct Made<'a> {
    authority: &'a Path,
}

#[derive(Serialize)]
struct Invitation {
    token: String,
    #[serde(flatten)]
    subject: Subject,
    expires: Timestamp,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    subject: Subject,
    file: &'a Path,
    serial: String,
    expires: Timestamp,
}

#[derive(Serialize)]
struct Revoked<'a> {
    name: &'a Name,
    revoked: u64,
}

#[derive(Serialize)]
struct Rotated {
    signs_from: Timestamp,
}

#[derive(Serialize)]
struct List {
    certificates: Vec<Listed>,
    tokens: Vec<Invited>,
}

#[derive(Serialize)]
struct Invited {
    #[serde(flatten)]
    subject: Subject,
    expires: Timestamp,
}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    subject: Subject,
    serial: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_known_as: Vec<String>,
    issued: Timestamp,
    expires: Timestamp,
    revoked: Option<Timestamp>,
    good: bool,
}

impl Listed {
    fn new(entry: &Entry, now: Timestamp) -> Self {
        let Entry { serial, subject, also_known_as, issued, expires, revoked } = entry.clone();
        let (serial, good) = (serial.to_string(), entry.is_good(now));
        Self { subject, serial, also_known_as, issued, expires, revoked, good }
    }

    fn state(&self) -> String {
        match self.revoked {
            Some(when) => format!("revoked {when}"),
            None if self.good => "good".to_owned(),
            None => "ended".to_owned(),
        }
    }
}

fn list(list: &List) -> String {
    let row = |subject: &Subject, signed: String, ends: Timestamp, state: String| {
        let Subject { name, role } = subject;
        vec![name.to_string(), role.to_string(), signed, ends.to_string(), state]
    };
    let certificates = list.certificates.iter();
    let certificates =
        certificates.map(|it| row(&it.subject, it.issued.to_string(), it.expires, it.state()));
    let tokens = list.tokens.iter();
    let tokens = tokens.map(|it| row(&it.subject, "-".to_owned(), it.expires, "token".to_owned()));
    let rows: Vec<_> = certificates.chain(tokens).collect();
    if rows.is_empty() {
        return "no certificates and no tokens yet\n".to_owned();
    }
    table(&["name", "role", "signed", "ends", "state"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_for_nodes_and_for_a_while() {
        assert_eq!(node("collector"), Ok(Role::Collector));
        assert!(node("operator").unwrap_err().contains("`wirestamp pki issue`"));
        assert_eq!(lifetime("90m"), Ok(SignedDuration::from_mins(90)));
        assert!(lifetime("-1h").unwrap_err().contains("at the least"));
        assert!(lifetime("soon").unwrap_err().contains("such as 30m"));
    }

    #[test]
    fn browsers_call_by_domains_and_addresses() {
        for name in ["localhost", "*.example.org", "192.0.2.1", "2001:db8::1"] {
            assert_eq!(also_known_as(name), Ok(name.to_owned()));
        }
        for none in ["", "a b", "a..b", "http://x", "Ä", "*", "a.*.b"] {
            also_known_as(none).unwrap_err();
        }
    }
}
