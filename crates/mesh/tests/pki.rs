//! The CA, its file, and handshakes (TLS 1.3) with the certificates that it issues.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use wirestamp_mesh::pki::{Authority, Credentials, Error, LIFETIME, Request, Role, Subject, Token};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The real time, because handshakes check the validity of certificates.
fn now() -> Timestamp {
    Timestamp::now()
}

fn subject(name: &str, role: Role) -> Subject {
    Subject { name: name.parse().unwrap(), role }
}

fn in_folder(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("authority.sqlite")
}

fn authority() -> (tempfile::TempDir, Authority) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::create(&in_folder(&folder), now()).unwrap();
    (folder, authority)
}

fn issue(authority: &mut Authority, subject: &Subject) -> Credentials {
    let request = Request::new().unwrap();
    let issued = authority.issue(subject, &request.pem().unwrap(), &[], now()).unwrap();
    assert!(request.is_answered_by(&issued.der));
    assert!(!Request::new().unwrap().is_answered_by(&issued.der));
    Credentials::new(&request, &issued)
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

fn roots(of: &Credentials) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    certificates(&of.trust_pem).into_iter().for_each(|it| roots.add(it).unwrap());
    Arc::new(roots)
}

/// A handshake in memory. Returns the client's subject, as verified by the server.
fn shake_hands(
    client: &Credentials,
    server: &Credentials,
    called: &str,
) -> Result<Subject, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = |of: &Credentials| PrivateKeyDer::from_pem_slice(of.key_pem.as_bytes()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots(server), provider.clone()).build();
    let serving = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier.unwrap())
        .with_single_cert(certificates(&server.chain_pem()), key(server))?;
    let calling = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(client))
        .with_client_auth_cert(certificates(&client.chain_pem()), key(client))?;
    let called = ServerName::try_from(called.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(calling), called)?;
    let mut server = ServerConnection::new(Arc::new(serving))?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    Ok(Subject::of(&server.peer_certificates().unwrap()[0]).unwrap().0)
}

#[test]
fn nodes_of_one_mesh_accept_each_other() {
    let (_folder, mut authority) = authority();
    let (probe, controller) = (subject("roof", Role::Probe), subject("main", Role::Controller));
    let [client, server] = [&probe, &controller].map(|it| issue(&mut authority, it));
    assert_eq!(shake_hands(&client, &server, &controller.domain()), Ok(probe.clone()));
    // Rejected: the name of another node, and a probe as the server.
    let other = subject("other", Role::Controller).domain();
    assert!(shake_hands(&client, &server, &other).is_err());
    assert!(shake_hands(&client, &client, &probe.domain()).is_err());
}

#[test]
fn nodes_of_another_mesh_are_rejected() {
    let ((_one, mut here), (_other, mut there)) = (authority(), authority());
    let (probe, controller) = (subject("roof", Role::Probe), subject("main", Role::Controller));
    let called = controller.domain();
    let (ours, theirs) = (issue(&mut here, &controller), issue(&mut there, &probe));
    assert!(shake_hands(&theirs, &ours, &called).is_err());
    // The client trusts our server, but our server does not trust the client.
    let trusting = Credentials { trust_pem: ours.trust_pem.clone(), ..theirs };
    assert!(shake_hands(&trusting, &ours, &called).is_err());
}

#[test]
fn new_ca_key_signs_after_distribution() {
    let (_folder, mut authority) = authority();
    let (probe, controller) = (subject("roof", Role::Probe), subject("main", Role::Controller));
    let called = controller.domain();
    let old = issue(&mut authority, &probe);
    let signs_from = authority.rotate(now()).unwrap();
    assert!(signs_from >= now() + LIFETIME - HOUR);
    let (server, new) = (issue(&mut authority, &controller), issue(&mut authority, &probe));
    assert_eq!([&old, &new].map(|it| certificates(&it.trust_pem).len()), [1, 2]);
    for client in [&old, &new] {
        assert_eq!(shake_hands(client, &server, &called), Ok(probe.clone()));
    }
    // The new key signs; nodes with the new CA certificate trust it.
    let request = Request::new().unwrap();
    let later = authority.issue(&controller, &request.pem().unwrap(), &[], signs_from).unwrap();
    let later = Credentials::new(&request, &later);
    let first = |it: &Credentials| certificates(&it.trust_pem).remove(0);
    assert_eq!(first(&later), certificates(&new.trust_pem)[1]);
    assert_ne!(first(&later), first(&new));
    let token = authority.token(&probe, HOUR, signs_from).unwrap();
    assert!(token.is_of(&first(&later)) && !token.is_of(&first(&new)));
}

#[test]
fn lost_key_invalidates_its_certificates() {
    let (_folder, mut authority) = authority();
    let (probe, controller) = (subject("roof", Role::Probe), subject("main", Role::Controller));
    let called = controller.domain();
    let old = issue(&mut authority, &probe);
    let token = authority.token(&probe, HOUR, now()).unwrap();
    let used = authority.token(&probe, HOUR, now()).unwrap();
    let own = Request::new().unwrap().pem().unwrap();
    authority.enrol(&used, &own, now()).unwrap();
    authority.start_anew(now()).unwrap();
    assert!(matches!(authority.enrol(&used, &own, now()), Err(Error::UsedToken { .. })));
    let server = issue(&mut authority, &controller);
    let good: Vec<_> = authority.entries().unwrap().iter().map(|it| it.is_good(now())).collect();
    assert_eq!(good, [false, false, true]);
    assert!(shake_hands(&old, &server, &called).is_err());
    let trusting = Credentials { trust_pem: server.trust_pem.clone(), ..old };
    assert!(shake_hands(&trusting, &server, &called).is_err());
    let request = Request::new().unwrap().pem().unwrap();
    assert!(matches!(authority.enrol(&token, &request, now()), Err(Error::UnknownToken)));
    let new = issue(&mut authority, &probe);
    assert_eq!(shake_hands(&new, &server, &called), Ok(probe));
}

#[test]
fn token_works_once_and_replaces_certificates() {
    let (folder, mut authority) = authority();
    let probe = subject("roof", Role::Probe);
    let request = Request::new().unwrap().pem().unwrap();
    let token = authority.token(&probe, HOUR, now()).unwrap();
    let trusted = certificates(&authority.trust_pem(now()).unwrap());
    assert!(token.is_of(&trusted[0]));
    // A request that cannot be signed does not use up the token.
    assert!(matches!(authority.enrol(&token, "no request", now()), Err(Error::Certificate(_))));
    let issued = authority.enrol(&token, &request, now()).unwrap();
    assert_eq!(Subject::of(&issued.der), Ok((probe.clone(), issued.serial)));
    // The token is also used for another `Authority` with the same file.
    let mut again = Authority::open(&in_folder(&folder)).unwrap();
    let other = Request::new().unwrap().pem().unwrap();
    let used = again.enrol(&token, &other, now()).unwrap_err();
    assert!(used.to_string().starts_with("the token for probe roof was used at"), "{used}");
    // The same key again, as if the response had been lost.
    let repeated = again.enrol(&token, &request, now()).unwrap();
    assert!(again.is_good(repeated.serial, now()).unwrap());
    assert!(!again.is_good(issued.serial, now()).unwrap());
    let used = token;

    let token = again.token(&probe, HOUR, now()).unwrap();
    assert_eq!(again.unused_tokens(now()).unwrap()[0].subject, probe);
    again.enrol(&token, &other, now()).unwrap();
    assert_eq!(again.unused_tokens(now()).unwrap(), []);
    let good: Vec<_> = again.entries().unwrap().iter().map(|it| it.is_good(now())).collect();
    assert_eq!(good, [false, false, true]);
    // The earlier node cannot enrol again with its used token.
    assert!(matches!(again.enrol(&used, &request, now()), Err(Error::UsedToken { .. })));
}

#[test]
fn foreign_and_expired_tokens_are_rejected() {
    let ((_one, mut here), (_other, mut there)) = (authority(), authority());
    let probe = subject("roof", Role::Probe);
    let request = Request::new().unwrap().pem().unwrap();
    let foreign = there.token(&probe, HOUR, now()).unwrap();
    assert!(matches!(here.enrol(&foreign, &request, now()), Err(Error::UnknownToken)));
    let old = here.token(&probe, HOUR, now()).unwrap();
    let later = now() + HOUR;
    assert!(matches!(here.enrol(&old, &request, later), Err(Error::ExpiredToken { .. })));
    assert_eq!(here.entries().unwrap(), []);
}

/// Its cost is one read: the request is not parsed, and the database not locked for a change.
#[test]
fn wrong_token_is_rejected_before_its_request_is_parsed() {
    let ((folder, mut here), (_other, mut there)) = (authority(), authority());
    let probe = subject("roof", Role::Probe);
    let foreign = there.token(&probe, HOUR, now()).unwrap();
    let old = here.token(&probe, HOUR, now()).unwrap();
    let used = here.token(&probe, HOUR, now()).unwrap();
    let request = Request::new().unwrap().pem().unwrap();
    here.enrol(&used, &request, now()).unwrap();
    here.revoke(&probe.name, None, now()).unwrap();
    let expired = here.token(&probe, HOUR, now()).unwrap();
    let later = now() + HOUR;
    // Another process holds the lock for changes.
    let other = rusqlite::Connection::open(in_folder(&folder)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for request in ["no request", &request] {
        for unknown in [&foreign, &old] {
            assert!(matches!(here.enrol(unknown, request, now()), Err(Error::UnknownToken)));
        }
        assert!(matches!(here.enrol(&used, request, now()), Err(Error::UsedToken { .. })));
        assert!(matches!(here.enrol(&expired, request, later), Err(Error::ExpiredToken { .. })));
    }
}

#[test]
fn revocation_covers_certificates_and_tokens() {
    let (_folder, mut authority) = authority();
    let probe = subject("roof", Role::Probe);
    let request = Request::new().unwrap().pem().unwrap();
    let token = authority.token(&probe, HOUR, now()).unwrap();
    let first = authority.enrol(&token, &request, now()).unwrap();
    let second = authority.renew(&probe, first.serial, &request, now()).unwrap();
    assert!(authority.entries().unwrap().iter().all(|it| it.is_good(now())));
    let spare: Token = authority.token(&probe, HOUR, now()).unwrap();
    let other_role = authority.revoke(&probe.name, Some(Role::Viewer), now());
    assert!(matches!(other_role, Err(Error::NothingToRevoke(_))));
    assert_eq!(authority.revoke(&probe.name, Some(Role::Probe), now()).unwrap(), 3);
    for serial in [first.serial, second.serial] {
        let refused = authority.renew(&probe, serial, &request, now());
        assert!(matches!(refused, Err(Error::InvalidCertificate(_))));
    }
    assert!(matches!(authority.enrol(&spare, &request, now()), Err(Error::UnknownToken)));
    assert!(matches!(authority.enrol(&token, &request, now()), Err(Error::UsedToken { .. })));
    assert!(matches!(authority.revoke(&probe.name, None, now()), Err(Error::NothingToRevoke(_))));
}

#[test]
fn certificate_expires() {
    let (_folder, mut authority) = authority();
    let probe = subject("roof", Role::Probe);
    let request = Request::new().unwrap().pem().unwrap();
    let issued = authority.issue(&probe, &request, &[], now()).unwrap();
    let entry = &authority.entries().unwrap()[0];
    assert!(entry.is_good(now()) && !entry.is_good(now() + LIFETIME + HOUR));
    let late = authority.renew(&probe, issued.serial, &request, now() + LIFETIME + HOUR);
    assert!(matches!(late, Err(Error::InvalidCertificate(_))));
    let somebody = subject("cellar", Role::Probe);
    let other = authority.renew(&somebody, issued.serial, &request, now());
    assert!(matches!(other, Err(Error::InvalidCertificate(_))));
}

#[test]
fn other_certificate_names_are_ignored() {
    let (_folder, mut authority) = authority();
    let controller = subject("main", Role::Controller);
    let request = Request::new().unwrap().pem().unwrap();
    let names = ["mesh.example.org", "192.0.2.7"].map(str::to_owned);
    let first = authority.issue(&controller, &request, &names, now()).unwrap();
    authority.renew(&controller, first.serial, &request, now()).unwrap();
    assert_eq!(authority.entries().unwrap()[1].also_known_as, names);
    let stolen = [subject("roof", Role::Probe).domain()];
    let refused = authority.issue(&controller, &request, &stolen, now());
    assert!(matches!(refused, Err(Error::OwnName(name)) if name == stolen[0]));
}

#[test]
fn collector_has_another_name_than_the_controllers_own() {
    let (_folder, mut authority) = authority();
    let error = authority.token(&subject("controller", Role::Collector), HOUR, now()).map(drop);
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("has this name; choose another one, such as \"store\""), "{error}");
    assert!(authority.unused_tokens(now()).unwrap().is_empty());
    for (name, role) in [("store", Role::Collector), ("controller", Role::Probe)] {
        authority.token(&subject(name, role), HOUR, now()).unwrap();
    }
}

#[test]
fn file_contains_one_ca_and_errors_name_it() {
    let (folder, authority) = authority();
    let path = in_folder(&folder);
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let error = |result: Result<Authority, Error>| result.map(drop).unwrap_err().to_string();
    assert!(error(Authority::create(&path, now())).contains("cannot create a CA at"));
    assert!(error(Authority::open(Path::new("/nowhere/x"))).contains("`wirestamp pki create`"));
    let nowhere = Path::new("/nowhere/x");
    assert!(error(Authority::create(nowhere, now())).contains("/nowhere/x: No such"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(authority);
    let mut file = std::fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    file.write_all(b"other content, long enough for the header of a database").unwrap();
    assert!(error(Authority::open(&path)).contains("not a database"));
    let mut text = String::new();
    std::fs::File::open(&path).unwrap().read_to_string(&mut text).unwrap();
    assert!(text.starts_with("other content"));
}
