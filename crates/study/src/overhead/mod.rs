//! x
mod packets;
mod paper;
pub use packets::*;
pub use paper::*;
#[cfg(test)]
mod proto {
    use crate::experiment::*;
    #[test]
    fn proto() {
        let mut s = super::packets::Packets::new(super::Size::QUICK).unwrap();
        let stop = wirestamp_capture::Stop::new().unwrap();
        let d = std::path::PathBuf::from("/tmp/proto-overhead");
        run(&mut s, Some(&d), 1, &stop, &mut |p| eprintln!("{p:?}")).unwrap();
    }
}
