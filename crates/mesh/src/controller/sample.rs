//! A controller for tests.

use std::future;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::runtime::Runtime;

use super::credentials::now;
use super::{Controller, Settings};
use crate::Name;
use crate::collector::Keep;
use crate::pki::{Authority, Request, Role, Subject};
use crate::task::Task;

/// One that has its files in a folder, and a page. Results may be there.
pub(crate) fn open(folder: &Path, runtime: &Runtime) -> Controller {
    let authority = folder.join("authority");
    Authority::create(&authority, now()).unwrap();
    let settings = Settings {
        socket: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
        folder: folder.to_owned(),
        authority,
        names: Vec::new(),
        keep: Keep { age: Duration::from_secs(3600), bytes: None },
        page: Some("127.0.0.1:0".parse().unwrap()),
    };
    runtime.block_on(async { Controller::open(settings) }).unwrap()
}

/// Enters a task.
pub(crate) fn enter(controller: &Controller, task: &str) {
    let task: Task = serde_json::from_str(task).unwrap();
    controller.plan().enter(&task, now()).unwrap();
}

/// Has it run until the runtime ends.
pub(crate) fn run(controller: Controller, runtime: &Runtime) {
    runtime.spawn(controller.run(future::pending()));
}

/// Makes a task at home at a collector that takes calls and answers none, as long as its socket is kept.
pub(crate) fn hang(controller: &Controller, task: u64) -> TcpListener {
    let (name, lifetime) = ("silent".parse::<Name>().unwrap(), SignedDuration::from_mins(1));
    let Controller { authority, homes, plan, .. } = controller;
    let subject = Subject { name: name.clone(), role: Role::Collector };
    let token = authority.lock().token(&subject, lifetime, now()).unwrap();
    let request = Request::new().unwrap().pem().unwrap();
    authority.lock().enrol(&token, &request, now()).unwrap();
    authority.look().unwrap();
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    homes.comes(&name, socket.local_addr().unwrap().to_string(), now()).unwrap();
    let tasks = plan.subscribe().borrow().clone();
    homes.settle(task, &tasks, &authority.members().borrow()).unwrap();
    assert!(homes.of(task).is_some());
    socket
}

/// The status of an answer, and what is in it. HTTP/1.0 has no marks between pieces.
pub(crate) fn get(page: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(page).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {page}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}
