//! RTP of real programs: ffmpeg's streams and sipp's calls, in a namespace, captured by us.

pub(crate) mod degrade;
pub(crate) mod tshark;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Stdio};

use wirestamp_lab::Netns;

use crate::common::tool;

/// Seconds that a stream lasts.
const SECONDS: &str = "5";
/// The port of the SIP callee.
const CALLEE: &str = "5071";

/// Encodings that ffmpeg sends: the encoder's options, the muxer, and the port.
const STREAMS: [(&[&str], &str, u16); 6] = [
    (&["-f", "lavfi", "-i", "sine", "-c:a", "pcm_mulaw", "-ar", "8000"], "rtp", 40_000),
    (&["-f", "lavfi", "-i", "sine", "-c:a", "pcm_alaw", "-ar", "8000"], "rtp", 40_010),
    (&["-f", "lavfi", "-i", "sine", "-c:a", "g722", "-ar", "16000"], "rtp", 40_020),
    (&["-f", "lavfi", "-i", "sine", "-c:a", "libopus", "-ar", "48000"], "rtp", OPUS_PORT),
    (&["-f", "lavfi", "-i", "testsrc=size=320x240", "-c:v", "mpeg2video"], "rtp_mpegts", 40_040),
    (&["-f", "lavfi", "-i", "testsrc=size=320x240", "-c:v", "mpeg2video"], "mpegts", 40_050),
];
const OPUS_PORT: u16 = 40_030;

/// SDP of the Opus stream, which has a dynamic payload type.
const OPUS_CALL: &str = "INVITE sip:b@127.0.0.1 SIP/2.0\r\nContent-Type: application/sdp\r\n\r\n\
    v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
    m=audio 40030 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\n";

/// Calls of sipp: the payload types offered, what is played, and the caller's ports.
const CALLS: [(&str, &str, &str, &str); 2] = [
    ("8 101", "play_pcap_audio=\"/usr/share/sip-tester/g711a.pcap\"", "5072", "43000"),
    ("18 101", "rtp_stream=\"voice.g729,1,18\"", "5074", "44000"),
];

/// Captures all of them into `folder`/real.pcapng.
pub(crate) fn capture(folder: &Path) {
    let netns = Netns::new().unwrap();
    let status = netns.command("ip").args(["link", "set", "lo", "up"]).status().unwrap();
    assert!(status.success());
    let capture = begin_capture(&netns, folder);
    let announcer = netns.run(|| UdpSocket::bind("127.0.0.1:5060")).unwrap().unwrap();
    announcer.send_to(OPUS_CALL.as_bytes(), "127.0.0.1:5060").unwrap();

    let callee = ["-sn", "uas", "-p", CALLEE, "-mp", "42000", "-m", "2"];
    let mut programs = vec![sipp(&netns, folder, &callee)];
    programs.extend(CALLS.iter().map(|call| caller(&netns, folder, call)));
    programs.extend(STREAMS.iter().map(|(options, muxer, port)| {
        let to = match *muxer {
            "mpegts" => format!("udp://127.0.0.1:{port}?pkt_size=1316"),
            _ => format!("rtp://127.0.0.1:{port}"),
        };
        let begin = ["-v", "error", "-nostdin", "-re"];
        let end = ["-t", SECONDS, "-f", muxer, &to];
        start(netns.command("ffmpeg").args(begin).args(*options).args(end))
    }));
    for program in programs {
        let output = program.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    tool("kill", &["-INT", &capture.id().to_string()]);
    assert!(capture.wait_with_output().unwrap().status.success());
}

fn begin_capture(netns: &Netns, folder: &Path) -> Child {
    let mut command = netns.command(env!("CARGO_BIN_EXE_wirestamp"));
    command.args(["capture", "-i", "lo", "-Q", "in", "-w", "real.pcapng", "udp"]);
    let mut capture = start(command.current_dir(folder));
    let message = BufReader::new(capture.stderr.as_mut().unwrap());
    assert!(message.lines().any(|line| line.unwrap().contains("Ctrl-C")), "it does not listen");
    capture
}

fn caller(netns: &Netns, folder: &Path, call: &(&str, &str, &str, &str)) -> Child {
    let (types, voice, port, media_port) = call;
    // Frames of 10 ms with arbitrary content.
    let frames: Vec<u8> = (0..=u8::MAX).cycle().take(10 * 400).collect();
    fs::write(folder.join("voice.g729"), frames).unwrap();
    let scenario = include_str!("call.xml").replace("@TYPES@", types).replace("@VOICE@", voice);
    let file = format!("{port}.xml");
    fs::write(folder.join(&file), scenario).unwrap();
    let to = format!("127.0.0.1:{CALLEE}");
    sipp(netns, folder, &["-sf", &file, &to, "-p", port, "-mp", media_port, "-m", "1"])
}

fn sipp(netns: &Netns, folder: &Path, arguments: &[&str]) -> Child {
    let everywhere = ["-i", "127.0.0.1", "-mi", "127.0.0.1", "-nostdin"];
    let mut command = netns.command("sipp");
    start(command.args(arguments).args(everywhere).env("TERM", "dumb").current_dir(folder))
}

fn start(command: &mut std::process::Command) -> Child {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}
