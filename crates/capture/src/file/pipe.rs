//! A capture that is read while it is written.

use std::fs::File;
use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::Stop;

/// A pipe that ends when its writer is done, or when the stop is requested.
pub(super) struct Pipe {
    pub(super) file: File,
    pub(super) stop: Stop,
}

impl Pipe {
    /// Waits until there is something to be read, or the writer is gone, or the stop is requested.
    fn wait(&self) -> io::Result<()> {
        let mut waits =
            [PollFd::new(&self.file, PollFlags::IN), PollFd::new(self.stop.event(), PollFlags::IN)];
        loop {
            match poll(&mut waits, None) {
                Err(Errno::INTR) => {}
                done => return done.map(drop).map_err(Into::into),
            }
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        if self.stop.is_requested() { Ok(0) } else { self.file.read(into) }
    }
}
