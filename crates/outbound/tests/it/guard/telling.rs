//! Telling somebody something: the head of the answer is the answer, whatever body follows it.

use std::time::Duration;

use chancery_outbound::guard::{ConnectStage, Fetch, Guard, GuardConfig, GuardError, GuardedClient, Whole};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::guard::fakes::loopback;
use crate::guard::receiver::{Receiver, ok, read_head};

const IN_FLIGHT: u64 = 16 * 1024 * 1024;

fn client(exchange_ms: u64) -> GuardedClient {
    Guard::new(GuardConfig { exchange_ms, ..loopback() }, &[]).unwrap().client()
}

async fn told(exchange_ms: u64, receiver: &Receiver) -> Result<u16, GuardError> {
    let told = client(exchange_ms).tell(Fetch::post(receiver.url("/hook"), "{}")).await;
    assert!(receiver.all_closed().await, "the connection was not given up: {told:?}");
    assert!(receiver.written() < IN_FLIGHT, "{} bytes were taken", receiver.written());
    told.map(|(status, _)| status.as_u16())
}

/// Says this, and then the other without an end, a part every so often.
async fn endless(head: &'static [u8], part: &'static [u8], pause: Duration) -> Receiver {
    Receiver::new(move |mut stream: TcpStream, seen| async move {
        read_head(&mut stream).await;
        let mut alive = seen.write(&mut stream, head).await;
        while alive {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            alive = seen.write(&mut stream, part).await;
        }
    })
    .await
}

#[tokio::test]
async fn every_status_is_an_answer_redirects_included() {
    for status in [200, 204, 301, 307, 308, 400, 410, 429, 500, 503] {
        let answer =
            format!("HTTP/1.1 {status} x\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let receiver = Receiver::saying(answer).await;
        assert_eq!(told(5_000, &receiver).await, Ok(status));
        assert_eq!(receiver.accepted(), 1);
    }
}

#[tokio::test]
async fn an_answer_is_taken_although_its_body_never_ends() {
    let flood = endless(b"HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 4096], Duration::ZERO).await;
    assert_eq!(told(60_000, &flood).await, Ok(200));
    let boastful = endless(b"HTTP/1.1 202 OK\r\ncontent-length: 99999999999\r\n\r\n", &[b'x'; 4096], Duration::ZERO).await;
    assert_eq!(told(60_000, &boastful).await, Ok(202));
    let drops = endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x", Duration::from_millis(50)).await;
    assert_eq!(told(300, &drops).await, Ok(200));
    let packed = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b\x08";
    assert_eq!(told(60_000, &endless(packed, &[0; 4096], Duration::ZERO).await).await, Ok(200));
}

#[tokio::test]
async fn an_answer_that_never_comes_is_none() {
    let headers = endless(b"HTTP/1.1 200 OK\r\n", b"x", Duration::from_millis(50)).await;
    assert_eq!(told(300, &headers).await, Err(GuardError::TimedOut(ConnectStage::Exchange)));
    let hundred_megabytes = endless(b"HTTP/1.1 200 OK\r\nx-big: ", &[b'h'; 4096], Duration::ZERO).await;
    assert_eq!(told(60_000, &hundred_megabytes).await, Err(GuardError::TooBig(Whole::Headers)));
    let flood = endless(b"", b"HTTP/1.1 103 Early\r\n\r\n", Duration::ZERO).await;
    assert_eq!(told(60_000, &flood).await, Err(GuardError::TooBig(Whole::Informational)));
    let old = Receiver::saying("just text, as in 1991\n").await;
    assert!(matches!(told(60_000, &old).await, Err(GuardError::Protocol(_))));
}

#[tokio::test]
async fn one_connection_serves_many_of_the_same_origin() {
    let receiver = Receiver::new(async |mut stream: TcpStream, _| {
        loop {
            if read_head(&mut stream).await.is_empty() {
                return;
            }
            let mut body = [0; 2];
            if stream.read_exact(&mut body).await.is_err() {
                return;
            }
            let answer = ok("thank you").replace("connection: close\r\n", "");
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await;
    let client = client(5_000);
    for _ in 0..5 {
        client.tell(Fetch::post(receiver.url("/hook"), "{}")).await.unwrap();
    }
    assert_eq!(receiver.accepted(), 1);
}
