//! Videos of ffmpeg as RTP packets, with the encoder's numbers of frames and key frames.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::common::tool;

/// Seconds of a video, frames per second, and frames from one key frame to the next.
const SECONDS: &str = "4";
const RATE: &str = "25";
const GROUP: &str = "25";
/// Max bytes of a payload.
const PAYLOAD: usize = 900;

/// A codec: its name in RTP, the options of the encoder, and the ending of a file's name.
pub(super) struct Codec {
    pub(super) name: &'static str,
    options: &'static [&'static str],
    ending: &'static str,
}

pub(super) const H264: Codec = Codec {
    name: "H264",
    options: &["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-sc_threshold", "0"],
    ending: "h264",
};
pub(super) const H265: Codec = Codec {
    name: "H265",
    options: &[
        "-c:v",
        "libx265",
        "-preset",
        "ultrafast",
        "-x265-params",
        "log-level=none:bframes=0:scenecut=0:repeat-headers=1",
    ],
    ending: "hevc",
};
pub(super) const VP8: Codec = Codec {
    name: "VP8",
    options: &["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"],
    ending: "ivf",
};
pub(super) const VP9: Codec = Codec {
    name: "VP9",
    options: &[
        "-c:v",
        "libvpx-vp9",
        "-deadline",
        "realtime",
        "-cpu-used",
        "8",
        "-lag-in-frames",
        "0",
        "-strict",
        "experimental",
    ],
    ending: "ivf",
};
pub(super) const AV1: Codec = Codec {
    name: "AV1",
    options: &["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"],
    ending: "ivf",
};

/// A video as RTP packets.
pub(super) struct Video {
    /// Packets of RTP in the order of their numbers.
    pub(super) packets: Vec<Vec<u8>>,
    /// Frames, as ffprobe counts them in the encoder's file.
    pub(super) frames: usize,
    /// Places of the key frames among them.
    pub(super) key_frames: Vec<usize>,
}

/// Encodes a video in `folder`, and receives it over loopback. The encoder runs for a file, too.
pub(super) fn encode(codec: &Codec, folder: &Path) -> Video {
    let file = folder.join(format!("{}.{}", codec.name, codec.ending));
    let file = file.to_str().unwrap();
    let source = format!("testsrc2=size=320x240:rate={RATE}");
    let common = ["-b:v", "1000k", "-g", GROUP, "-keyint_min", GROUP, "-threads", "1"];
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-t", SECONDS, "-f", "lavfi", "-i", &source]);
    command.args(codec.options).args(common).args(["-pix_fmt", "yuv420p", file]);
    let packets = if codec.name == AV1.name {
        // This version of ffmpeg has no packetisation of AV1.
        assert!(command.status().unwrap().success());
        packetise_av1(&fs::read(file).unwrap())
    } else {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let size = PAYLOAD + 12;
        let to = format!("rtp://{address}?pkt_size={size}");
        command.args(codec.options).args(common);
        command.args(["-pix_fmt", "yuv420p", "-payload_type", "96", "-f", "rtp", &to]);
        let mut encoder = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let end = thread::spawn(move || {
            let status = encoder.wait().unwrap();
            UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"end", address).unwrap();
            status
        });
        let packets = receive(&socket);
        assert!(end.join().unwrap().success());
        packets
    };
    let arguments = ["-v", "error", "-select_streams", "v", "-show_entries", "packet=flags"];
    let flags = tool("ffprobe", &[&arguments[..], &["-of", "csv=p=0", file]].concat());
    let frames = flags.lines().enumerate();
    let key_frames = frames.filter(|(_, flags)| flags.starts_with('K')).map(|(place, _)| place);
    Video { packets, frames: flags.lines().count(), key_frames: key_frames.collect() }
}

/// The packets of payload type 96, until the datagram that ends them.
fn receive(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        let length = socket.recv(&mut buffer).unwrap();
        match &buffer[..length] {
            b"end" => return packets,
            packet if packet.get(1).is_some_and(|second| second & 0x7f == 96) => {
                packets.push(packet.to_vec());
            }
            _ => {} // RTCP of another stream
        }
    }
}

/// The temporal units of an IVF file by "RTP Payload Format For AV1" section 4.4: all units have their length, and each
/// packet is full.
fn packetise_av1(file: &[u8]) -> Vec<Vec<u8>> {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    let mut rest = &file[32..];
    let mut timestamp = 0_u32;
    while let Some((head, after)) = rest.split_first_chunk::<12>() {
        let size = u32::from_le_bytes(*head.first_chunk().unwrap());
        let (unit, after) = after.split_at(usize::try_from(size).unwrap());
        rest = after;
        let (elements, is_new_sequence) = elements(unit);
        let payloads = fill(&elements, is_new_sequence);
        let count = payloads.len();
        for (place, payload) in payloads.into_iter().enumerate() {
            let number = u16::try_from(packets.len()).unwrap().to_be_bytes();
            let marker = u8::from(place + 1 == count) << 7;
            let head = [0x80, 96 | marker, number[0], number[1]];
            let words = [timestamp, 0x0102_0304].map(u32::to_be_bytes);
            packets.push([&head[..], words.as_flattened(), &payload].concat());
        }
        timestamp += 3600;
    }
    packets
}

/// The units (OBU) of a temporal unit without their sizes and without the delimiter, and whether a sequence header is among
/// them.
fn elements(mut unit: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let (mut elements, mut has_sequence_header) = (Vec::new(), false);
    while let Some((head, rest)) = unit.split_first() {
        let kind = head >> 3 & 0x0f;
        let extension = usize::from(head >> 2 & 1);
        assert!(head & 2 != 0, "a unit without a size");
        let (size, length) = number(&rest[extension..]);
        let content = &rest[extension + length..][..size];
        if kind != 2 {
            has_sequence_header |= kind == 1;
            elements.push([&[head & !2], &rest[..extension], content].concat());
        }
        unit = &rest[extension + length + size..];
    }
    (elements, has_sequence_header)
}

/// A number of seven bits in each byte (leb128), and its bytes.
fn number(bytes: &[u8]) -> (usize, usize) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let digits = bytes[..length].iter().rev();
    (digits.fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f)), length)
}

/// Payloads with these elements.
fn fill(elements: &[Vec<u8>], is_new_sequence: bool) -> Vec<Vec<u8>> {
    let first = if is_new_sequence { 0x08 } else { 0 };
    let mut payloads = vec![vec![first]];
    for element in elements {
        let mut left = &element[..];
        while !left.is_empty() {
            let payload = payloads.last_mut().unwrap();
            let room = PAYLOAD.saturating_sub(payload.len() + 2);
            let (part, after) = left.split_at(left.len().min(room));
            if !part.is_empty() {
                let [low, high] = [part.len() & 0x7f, part.len() >> 7];
                payload.extend([0x80 | u8::try_from(low).unwrap(), u8::try_from(high).unwrap()]);
                payload.extend(part);
            }
            let is_continued = !after.is_empty() && after.len() < element.len();
            if !after.is_empty() {
                payload[0] |= u8::from(is_continued) << 6;
                payloads.push(vec![u8::from(is_continued) << 7]);
            }
            left = after;
        }
    }
    payloads
}
