//! Receivers that want to hurt the sender: every bound holds, and the connection is given up.

use std::time::Duration;

use chancery_outbound::guard::{ConnectStage, Fetch, Guard, GuardConfig, GuardError, GuardedClient, Outer, Whole};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::guard::fakes::loopback;
use crate::guard::receiver::{Receiver, Seen, read_head};

/// What the system may hold between two sockets, and then some.
const IN_FLIGHT: u64 = 16 * 1024 * 1024;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";

fn impatient() -> GuardedClient {
    let config = GuardConfig { exchange_ms: 400, ..loopback() };
    Guard::new(config, &[]).unwrap().client()
}

fn patient() -> GuardedClient {
    Guard::new(GuardConfig { exchange_ms: 60_000, ..loopback() }, &[]).unwrap().client()
}

async fn refused(client: &GuardedClient, receiver: &Receiver) -> GuardError {
    let fault = client.fetch(Fetch::post(receiver.url("/hook"), "{}")).await.unwrap_err();
    assert!(receiver.all_closed().await, "the connection was not given up: {fault}");
    assert!(receiver.written() < IN_FLIGHT, "{} bytes were taken: {fault}", receiver.written());
    fault
}

/// Says `head`, then `part` until nobody listens, at most `most` bytes.
async fn repeat(mut stream: TcpStream, seen: &Seen, head: &[u8], part: &[u8], most: u64) {
    read_head(&mut stream).await;
    let mut alive = seen.write(&mut stream, head).await;
    let mut said = 0;
    while alive && said < most {
        alive = seen.write(&mut stream, part).await;
        said += part.len() as u64;
    }
}

#[tokio::test]
async fn an_endless_body_is_cut_at_the_limit() {
    let endless = Receiver::new(async |stream, seen| {
        let head = [HEAD, b"\r\n"].concat();
        repeat(stream, &seen, &head, &[b'x'; 4096], u64::MAX).await;
    })
    .await;
    assert_eq!(refused(&patient(), &endless).await, GuardError::TooBig(Whole::Body));
    let chunked = Receiver::new(async |stream, seen| {
        let head = [HEAD, b"transfer-encoding: chunked\r\n\r\n"].concat();
        repeat(stream, &seen, &head, b"1\r\nx\r\n", u64::MAX).await;
    })
    .await;
    assert_eq!(refused(&patient(), &chunked).await, GuardError::TooBig(Whole::Body));
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_not_begun() {
    let boastful = Receiver::saying("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx").await;
    assert_eq!(refused(&patient(), &boastful).await, GuardError::TooBig(Whole::Body));
}

#[tokio::test]
async fn a_chunk_extension_without_end_is_cut() {
    let receiver = Receiver::new(async |stream, seen| {
        let head = [HEAD, b"transfer-encoding: chunked\r\n\r\n1;"].concat();
        repeat(stream, &seen, &head, &[b'e'; 4096], u64::MAX).await;
    })
    .await;
    assert!(matches!(refused(&patient(), &receiver).await, GuardError::BrokeOff(_)));
}

#[tokio::test]
async fn a_hundred_megabytes_of_headers_are_cut() {
    let one = Receiver::new(async |stream, seen| {
        let head = [HEAD, b"x-big: "].concat();
        repeat(stream, &seen, &head, &[b'h'; 4096], 100 * 1024 * 1024).await;
    })
    .await;
    assert_eq!(refused(&patient(), &one).await, GuardError::TooBig(Whole::Headers));
    let many = Receiver::new(async |stream, seen| repeat(stream, &seen, HEAD, b"x-many: h\r\n", 100 * 1024 * 1024).await).await;
    assert_eq!(refused(&patient(), &many).await, GuardError::TooBig(Whole::Headers));
}

#[tokio::test]
async fn a_status_line_without_end_is_cut() {
    let receiver =
        Receiver::new(async |stream, seen| repeat(stream, &seen, b"HTTP/1.1 200 ", &[b'o'; 4096], u64::MAX).await).await;
    assert_eq!(refused(&patient(), &receiver).await, GuardError::TooBig(Whole::Headers));
}

/// One byte, a pause, one byte: for ever, or until nobody listens.
async fn drip(mut stream: TcpStream, seen: &Seen, head: &[u8]) {
    read_head(&mut stream).await;
    let mut alive = seen.write(&mut stream, head).await;
    while alive {
        tokio::time::sleep(Duration::from_millis(20)).await;
        alive = seen.write(&mut stream, b"a").await;
    }
}

#[tokio::test]
async fn dripping_headers_and_bodies_do_not_stretch_the_deadline() {
    let headers = Receiver::new(async |stream, seen| drip(stream, &seen, b"HTTP/1.1 200 OK\r\nx-slow: ").await).await;
    assert_eq!(refused(&impatient(), &headers).await, GuardError::TimedOut(ConnectStage::Exchange));
    let body =
        Receiver::new(async |stream, seen| drip(stream, &seen, &[HEAD, b"content-length: 9999\r\n\r\n"].concat()).await).await;
    assert_eq!(refused(&impatient(), &body).await, GuardError::TimedOut(ConnectStage::Exchange));
}

#[tokio::test]
async fn a_packed_answer_is_refused_unopened() {
    for encoding in ["gzip", "GZIP", "br", "deflate", "zstd", "gzip, identity", "identity, gzip", "x-unknown"] {
        let bomb =
            Receiver::saying(format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: 4\r\n\r\n\x1f\x08\0\0"))
                .await;
        let fault = refused(&patient(), &bomb).await;
        assert_eq!(fault, GuardError::Encoded(encoding.to_owned()));
        assert_eq!(fault.outer(), Outer::BadAnswer);
    }
    let plain = Receiver::saying("HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 2\r\n\r\nhi").await;
    assert_eq!(patient().fetch(Fetch::get(plain.url("/"))).await.unwrap().body, "hi");
}

#[tokio::test]
async fn we_ask_for_an_unpacked_answer_by_the_checked_host() {
    let echo = Receiver::new(async |mut stream: TcpStream, seen| {
        let head = read_head(&mut stream).await;
        seen.write(&mut stream, crate::guard::receiver::ok(&head).as_bytes()).await;
    })
    .await;
    let mut fetch = Fetch::get(echo.url("/where?q=1"));
    fetch.headers.insert("accept-encoding", "gzip".parse().unwrap());
    fetch.headers.insert("host", "127.0.0.9".parse().unwrap());
    let said = String::from_utf8(patient().fetch(fetch).await.unwrap().body.to_vec()).unwrap();
    assert!(said.starts_with("GET /where?q=1 HTTP/1.1\r\n"), "{said}");
    assert!(said.contains("accept-encoding: identity\r\n") && !said.contains("gzip"), "{said}");
    assert!(said.contains(&format!("host: {}\r\n", echo.address)) && !said.contains("127.0.0.9"), "{said}");
}

#[tokio::test]
async fn a_flood_of_interim_answers_is_cut() {
    for interim in [&b"HTTP/1.1 100 Continue\r\n\r\n"[..], b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"] {
        let flood = Receiver::new(async move |stream, seen| repeat(stream, &seen, b"", interim, u64::MAX).await).await;
        assert_eq!(refused(&patient(), &flood).await, GuardError::TooBig(Whole::Informational));
    }
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    for garbage in [
        &b"<html>hello</html>\n"[..],
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"-ERR wrong number of arguments\r\n",
        b"220 mail.example ESMTP\r\n",
        b"HTTP/0.9 200 OK\r\n\r\nhello",
        b"HTTP/3.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi",
        b"\0\0\0\0",
        b"",
    ] {
        let receiver = Receiver::saying(garbage).await;
        let fault = refused(&patient(), &receiver).await;
        assert!(matches!(fault, GuardError::Protocol(_)), "{}: {fault}", garbage.escape_ascii());
        assert_eq!(fault.outer(), Outer::Unreachable);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_taken_for_whole() {
    for part in [
        "content-length: 10\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "transfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let receiver = Receiver::saying(format!("HTTP/1.1 200 OK\r\n{part}")).await;
        assert!(matches!(refused(&patient(), &receiver).await, GuardError::BrokeOff(_)), "{part:?}");
    }
}

#[tokio::test]
async fn a_stalled_handshake_and_a_silent_receiver_are_given_up() {
    let silent = || Receiver::new(async |mut stream: TcpStream, _| while stream.read_u8().await.is_ok() {});
    let stalled = silent().await;
    let client = Guard::new(GuardConfig { tls_ms: 200, ..loopback() }, &[]).unwrap().client();
    let fault = client.fetch(Fetch::get(format!("https://{}/", stalled.address))).await.unwrap_err();
    assert_eq!(fault, GuardError::TimedOut(ConnectStage::Tls));
    assert!(stalled.all_closed().await);
    assert_eq!(refused(&impatient(), &silent().await).await, GuardError::TimedOut(ConnectStage::Exchange));
}

#[tokio::test]
async fn a_stream_ends_when_it_pauses_too_long_or_grows_too_big() {
    let pausing = Receiver::new(async |mut stream: TcpStream, seen| {
        read_head(&mut stream).await;
        seen.write(&mut stream, &[HEAD, b"\r\nfirst"].concat()).await;
        while stream.read_u8().await.is_ok() {}
    })
    .await;
    let soon = Fetch { within: Some(Duration::from_secs(1)), ..Fetch::get(pausing.url("/")) };
    let mut streamed = patient().stream(soon).await.unwrap();
    assert_eq!(streamed.body.chunk().await.unwrap().unwrap(), "first");
    assert_eq!(streamed.body.chunk().await.unwrap_err(), GuardError::TimedOut(ConnectStage::Idle));
    drop(streamed);
    assert!(pausing.all_closed().await);

    let endless =
        Receiver::new(async |stream, seen| repeat(stream, &seen, &[HEAD, b"\r\n"].concat(), &[b'x'; 4096], u64::MAX).await).await;
    let mut streamed = patient().stream(Fetch { most_bytes: Some(50_000), ..Fetch::get(endless.url("/")) }).await.unwrap();
    let mut got = 0;
    let fault = loop {
        match streamed.body.chunk().await {
            Ok(part) => got += part.expect("it never ends").len(),
            Err(fault) => break fault,
        }
    };
    assert!(got <= 50_000 && fault == GuardError::TooBig(Whole::Body), "{got} {fault}");
    drop(streamed);
    assert!(endless.all_closed().await);
}
