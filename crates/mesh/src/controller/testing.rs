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

/// A controller with its files in a folder, and with a page. The folder may contain results.
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
        move_after: None,
    };
    runtime.block_on(async { Controller::open(settings) }).unwrap()
}

/// Creates a task.
pub(crate) fn enter(controller: &Controller, task: &str) {
    let task: Task = serde_json::from_str(task).unwrap();
    controller.plan().enter(&task, now()).unwrap();
}

/// Runs the controller until the runtime ends.
pub(crate) fn run(controller: Controller, runtime: &Runtime) {
    runtime.spawn(controller.run(future::pending()));
}

/// Places a task at a collector that accepts calls but never answers, as long as its socket is open.
pub(crate) fn hang(controller: &Controller, task: u64) -> TcpListener {
    let Controller { authority, placement, plan, .. } = controller;
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let silent: Name = "silent".parse().unwrap();
    connect(controller, &silent, socket.local_addr().unwrap());
    let tasks = plan.subscribe().borrow().clone();
    placement.place([task], &tasks, &authority.members().borrow()).unwrap();
    assert!(placement.of(task).is_some());
    socket
}

/// Moves a task from the controller's own collector to `gone`, which cannot be reached.
pub(crate) fn move_away(controller: &Controller, task: u64) {
    let Controller { authority, placement, plan, .. } = controller;
    let tasks = plan.subscribe().borrow().clone();
    placement.place([task], &tasks, &authority.members().borrow()).unwrap();
    let gone: Name = "gone".parse().unwrap();
    // Its port is closed again.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    connect(controller, &gone, address);
    let measure = &tasks[&task].task.measure;
    let epoch = placement.move_to((task, measure), Some(&gone), &authority.members().borrow());
    assert_eq!(epoch.unwrap(), 1);
}

/// Enrols a collector, and connects it with this address.
fn connect(controller: &Controller, name: &Name, address: SocketAddr) {
    let Controller { authority, placement, .. } = controller;
    let subject = Subject { name: name.clone(), role: Role::Collector };
    let token = authority.lock().token(&subject, SignedDuration::from_mins(1), now()).unwrap();
    let request = Request::new().unwrap().pem().unwrap();
    authority.lock().enrol(&token, &request, now()).unwrap();
    authority.refresh().unwrap();
    placement.connected(name, address.to_string(), now()).unwrap();
}

/// Status and body of a response. HTTP/1.0 has no chunk markers.
pub(crate) fn get(page: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(page).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {page}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}
