//! Reads a capture while it is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::source;
use crate::{Error, Stop};

/// A pipe that ends when its writer closes it, or when the stop is requested.
pub(super) struct Pipe {
    file: File,
    stop: Stop,
}

impl Pipe {
    /// Opens the pipe at `path`, or standard input for `-`, without waiting for its writer.
    pub(super) fn open(path: &Path, stop: &Stop) -> Result<Self, Error> {
        let file = if path == Path::new("-") {
            source::input(path)?
        } else {
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
            opened.map_err(|cause| Error::Read { path: path.to_owned(), cause })?
        };
        Ok(Self { file, stop: stop.clone() })
    }

    /// Waits until bytes can be read, the writer has closed the pipe, or the stop is requested.
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
        loop {
            self.wait()?;
            if self.stop.is_requested() {
                return Ok(0);
            }
            match self.file.read(into) {
                // Another reader of the pipe has read the bytes.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn pipe_ends_with_its_writer_or_the_stop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let stop = Stop::new().unwrap();
        let mut pipe = Pipe::open(&path, &stop).unwrap();
        let mut bytes = [0; 4];
        thread::scope(|scope| {
            scope.spawn(|| File::create(&path).unwrap().write_all(b"here").unwrap());
            pipe.read_exact(&mut bytes).unwrap();
        });
        assert_eq!((&bytes, pipe.read(&mut [0; 4]).unwrap()), (b"here", 0));
        let mut unused = Pipe::open(&path, &stop).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| stop.request());
            assert_eq!(unused.read(&mut bytes).unwrap(), 0);
        });
    }
}
