//! `wirestamp pki`.

mod documents;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use wirestamp_mesh::Name;
use wirestamp_mesh::pki::{Authority, Credentials, Request, Role, Subject};

pub(crate) use documents::{Created, IssuedFile, List, NewToken, Revoked, Rotated};
use documents::{ListedCertificate, ListedToken, list};

use super::privileges::make_private_folder;
use crate::output::{Output, plural};

#[derive(Args)]
#[command(after_help = "\
The certificate authority (CA) is one file with private keys. Keep it on the controller's machine, \
and a backup in a safe place. Nodes of the mesh trust only its certificates. A certificate is valid \
for 90 days.

Examples:
  wirestamp pki create
  wirestamp pki token roof                          # a probe of this name can join, once
  wirestamp pki issue ann --role viewer -o ann.pem  # a certificate for a user or program
  wirestamp pki revoke roof                         # all certificates and tokens of the name
  wirestamp pki revoke roof --serial 5b2ce01f       # one of them, as `wirestamp pki list` shows it")]
pub(crate) struct Arguments {
    /// File of the certificate authority (CA)
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
    /// Create a certificate authority
    Create,
    /// Create a token with which a node can join, once
    Token {
        /// The node's name; its earlier certificates are revoked when the token is used
        name: Name,
        /// Role: probe or collector
        #[arg(long, value_name = "ROLE", default_value_t = Role::Probe, value_parser = node_role)]
        role: Role,
        /// Validity of the token, such as 30m or 2h
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = lifetime)]
        lifetime: SignedDuration,
    },
    /// Issue a certificate with a new key, and write both to a file
    Issue {
        /// The name
        name: Name,
        /// Role: probe, collector, controller, operator or viewer
        #[arg(long, value_name = "ROLE")]
        role: Role,
        /// Output file in PEM: key, certificate, and the certificates of the CA
        #[arg(short = 'o', long = "output", value_name = "FILE")]
        file: PathBuf,
        /// Replace an existing file, and the key in it
        #[arg(long)]
        overwrite: bool,
        /// Domain or address that browsers use for it; may be repeated
        #[arg(long, value_name = "NAME", value_parser = also_known_as)]
        also: Vec<String>,
    },
    /// List certificates with their validity, and unused tokens
    List,
    /// Revoke all certificates and tokens of a name
    Revoke {
        /// The name
        name: Name,
        /// Revoke only those of this role
        #[arg(long, value_name = "ROLE")]
        role: Option<Role>,
        /// Revoke only the certificate or token with this serial; its first digits suffice
        #[arg(long, value_name = "SERIAL", value_parser = serial, conflicts_with = "role")]
        serial: Option<String>,
    },
    /// Create a new CA key; it signs after 90 days, when all nodes have received it with a renewal
    Rotate {
        /// Use the new key at once and revoke all earlier certificates, after a key was stolen: every node has
        /// to join again
        #[arg(long)]
        at_once: bool,
    },
}

/// Parses the role of a token.
fn node_role(text: &str) -> Result<Role, String> {
    match text.parse()? {
        role @ (Role::Probe | Role::Collector) => Ok(role),
        role => Err(format!(
            "tokens are for probes and collectors; create a certificate for the {role} with `wirestamp pki issue`"
        )),
    }
}

fn lifetime(text: &str) -> Result<SignedDuration, String> {
    let time: SignedDuration = text.parse().map_err(|_| "expected a time such as 30m or 2h")?;
    let longest = SignedDuration::from_hours(30 * 24);
    if (SignedDuration::from_secs(1)..=longest).contains(&time) {
        Ok(time)
    } else {
        Err("the validity of a token must be from 1 second to 30 days".to_owned())
    }
}

/// Parses the first digits of a serial.
fn serial(text: &str) -> Result<String, String> {
    let is_number = (4..=64).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_hexdigit());
    is_number.then(|| text.to_owned()).ok_or_else(|| {
        "expected at least 4 hexadecimal digits, as `wirestamp pki list` shows them".to_owned()
    })
}

/// Parses a domain or an address.
fn also_known_as(text: &str) -> Result<String, String> {
    // The first label may be a wildcard (RFC 6125 section 6.4.3).
    let domain = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |it: &str| it.parse::<Name>().is_ok();
    if text.parse::<IpAddr>().is_ok() || (text.len() < 254 && domain.split('.').all(is_label)) {
        Ok(text.to_owned())
    } else {
        Err("expected a lower-case domain or an address".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let path = &arguments.authority;
    // Certificates have a resolution of seconds.
    let now = Timestamp::from_second(Timestamp::now().as_second())?;
    match &arguments.action {
        Action::Create => {
            if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
                make_private_folder(folder)?;
            }
            Authority::create(path, now)?;
            output.result(&Created { authority: path }, |it| {
                format!("created {}; keep it secret\n", it.authority.display())
            })?;
        }
        Action::Token { name, role, lifetime } => {
            let subject = Subject { name: name.clone(), role: *role };
            let token = Authority::open(path)?.token(&subject, *lifetime, now)?.to_string();
            let expires = now.checked_add(*lifetime)?;
            output.result(&NewToken { token, holder: subject.into(), expires }, |it| {
                format!("{}\n", it.token)
            })?;
            output.remark(format!("can be used once, until {expires}"));
        }
        Action::Issue { name, role, file, overwrite, also } => {
            let subject = Subject { name: name.clone(), role: *role };
            anyhow::ensure!(
                *overwrite || !file.exists(),
                "{} exists and may contain a key; choose another file, or add --overwrite",
                file.display()
            );
            let written = issue(&mut Authority::open(path)?, &subject, file, also, now)?;
            output.result(&written, |it| {
                let file = it.file.display();
                format!("{file}: key and certificate of {subject}, valid until {}\n", it.expires)
            })?;
        }
        Action::List => {
            let authority = Authority::open(path)?;
            let certificates = authority.entries()?;
            let certificates =
                certificates.iter().map(|entry| ListedCertificate::new(entry, now)).collect();
            let tokens = authority.unused_tokens(now)?.into_iter();
            let tokens = tokens.map(ListedToken::from).collect();
            output.result(&List { certificates, tokens }, list)?;
        }
        Action::Revoke { name, role, serial } => {
            let mut authority = Authority::open(path)?;
            let revoked = match serial {
                Some(serial) => authority.revoke_one(name, serial, now).map(|()| 1)?,
                None => authority.revoke(name, *role, now)?,
            };
            output.result(&Revoked { name, revoked }, |it| {
                format!(
                    "{}: revoked {}\n",
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
                format!("created a new key, which signs from {} on\n", it.signs_from)
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn issue<'a>(
    authority: &mut Authority,
    subject: &Subject,
    file: &'a Path,
    also_known_as: &[String],
    now: Timestamp,
) -> anyhow::Result<IssuedFile<'a>> {
    // Check the file before signing.
    Credentials::can_be_written(file).context("cannot write")?;
    let request = Request::new()?;
    let issued = authority.issue(subject, &request.pem()?, also_known_as, now)?;
    Credentials::new(&request, &issued).write(file).context("cannot write")?;
    let (holder, serial) = (subject.clone().into(), issued.serial.to_string());
    Ok(IssuedFile { holder, file, serial, expires: issued.expires })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_a_node_role_and_limited_validity() {
        assert_eq!(node_role("collector"), Ok(Role::Collector));
        assert!(node_role("operator").unwrap_err().contains("`wirestamp pki issue`"));
        assert_eq!(lifetime("90m"), Ok(SignedDuration::from_mins(90)));
        assert!(lifetime("-1h").unwrap_err().contains("from 1 second"));
        assert!(lifetime("soon").unwrap_err().contains("such as 30m"));
    }

    #[test]
    fn other_names_are_domains_or_addresses() {
        for name in ["localhost", "*.example.org", "192.0.2.1", "2001:db8::1"] {
            assert_eq!(also_known_as(name), Ok(name.to_owned()));
        }
        for none in ["", "a b", "a..b", "http://x", "Ä", "*", "a.*.b"] {
            also_known_as(none).unwrap_err();
        }
    }
}
