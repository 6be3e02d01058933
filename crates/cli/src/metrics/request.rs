//! Answers to HTTP requests (HTTP/1.1, RFC 9112).

use httparse::{EMPTY_HEADER, Error, Request, Status};

/// Prometheus' default path of metrics.
const PATH: &str = "/metrics";

/// Max bytes of a request line and headers; Prometheus sends about 300.
pub(super) const MAX_BYTES: usize = 8192;

/// Max number of headers of a request.
const MAX_HEADERS: usize = 64;

/// The answer to the received bytes; none while the request is incomplete. `page` returns the metrics,
/// or an error message.
pub(super) fn answer(
    received: &[u8],
    page: impl FnOnce() -> Result<String, String>,
) -> Option<Vec<u8>> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    let answer = match request.parse(received) {
        Ok(Status::Complete(_)) => respond(&request, page),
        Ok(Status::Partial) if received.len() < MAX_BYTES => return None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => {
            text("431 Request Header Fields Too Large", "the request is too long\n")
        }
        Err(_) => text("400 Bad Request", "not an HTTP request\n"),
    };
    Some(answer)
}

fn respond(request: &Request<'_, '_>, page: impl FnOnce() -> Result<String, String>) -> Vec<u8> {
    let path = request.path.and_then(|path| path.split('?').next());
    let mut answer = match request.method {
        Some("GET" | "HEAD") if path == Some(PATH) => match page() {
            Ok(page) => whole("200 OK", prometheus::TEXT_FORMAT, &page),
            Err(reason) => text("500 Internal Server Error", &format!("{reason}\n")),
        },
        Some("GET" | "HEAD") => text("404 Not Found", "metrics are at /metrics\n"),
        _ => text("405 Method Not Allowed\r\nAllow: GET, HEAD", "GET /metrics has the metrics\n"),
    };
    if request.method == Some("HEAD") {
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        answer.truncate(end.map_or(0, |end| end + 4));
    }
    answer
}

fn text(status: &str, body: &str) -> Vec<u8> {
    whole(status, "text/plain", body)
}

fn whole(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to(request: &str) -> Option<String> {
        answer(request.as_bytes(), || Ok("up 1\n".into()))
            .map(|answer| String::from_utf8(answer).unwrap())
    }

    fn status(request: &str) -> Option<String> {
        Some(to(request)?.split(' ').nth(1)?.to_owned())
    }

    #[test]
    fn metrics_are_served_at_the_default_path() {
        let answer = to("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("text/plain; version=0.0.4; charset=utf-8"), "{head}");
        assert!(head.contains("Content-Length: 5\r\n"), "{head}");
        assert_eq!(body, "up 1\n");
        let head_only = to("HEAD /metrics HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(head_only, format!("{head}\r\n\r\n"));
    }

    #[test]
    fn other_requests_get_an_error_status() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_BYTES));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        for (request, expected) in [
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("\u{16}\u{3}\u{1}\u{2}", "400"),
            (&long, "431"),
            (&many, "431"),
        ] {
            assert_eq!(status(request).as_deref(), Some(expected), "{request:.40}");
        }
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: a\r\n"), None, "answered too early");
        let failed = answer(b"GET /metrics HTTP/1.1\r\n\r\n", || Err("broken".into())).unwrap();
        assert!(failed.starts_with(b"HTTP/1.1 500 ") && failed.ends_with(b"broken\n"));
    }

    proptest! {
        #[test]
        fn every_long_request_is_answered(
            bytes in prop::collection::vec(any::<u8>(), MAX_BYTES..MAX_BYTES + 9),
        ) {
            prop_assert!(answer(&bytes, || Ok(String::new())).is_some());
        }
    }
}
