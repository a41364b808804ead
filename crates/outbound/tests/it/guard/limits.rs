//! Each limit at its edge: the last that is allowed and the first that is not.

use std::io;
use std::time::Duration;

use chancery_outbound::guard::{Blocked, ConnectStage, Dialled, Fetch, GuardConfig, GuardError, GuardedClient, Stream, Whole};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use crate::guard::fakes::{Dialer, Names, guard};
use crate::guard::receiver::{ok, read_head};
use crate::guard::tls::{Authority, PUBLIC};

fn plain() -> GuardConfig {
    GuardConfig { allow_http: true, allow_hosts: vec!["a.example".into()], ..GuardConfig::default() }
}

/// A receiver inside this process that waits, answers these bytes, and hangs up.
fn answering(config: GuardConfig, wait: Duration, answer: impl Into<Vec<u8>>) -> GuardedClient {
    let answer: Vec<u8> = answer.into();
    let dialer = Dialer::in_memory(move |mut stream: Box<dyn Stream>| {
        let answer = answer.clone();
        async move {
            read_head(&mut stream).await;
            sleep(wait).await;
            let _ = stream.write_all(&answer).await;
        }
    });
    guard(config, &Names::always(&[PUBLIC]), &dialer).client()
}

async fn outcome(client: &GuardedClient) -> Result<usize, GuardError> {
    client.fetch(Fetch::get("http://a.example/")).await.map(|fetched| fetched.body.len())
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[tokio::test(start_paused = true)]
async fn exchange_ms_is_15000() {
    assert_eq!(outcome(&answering(plain(), ms(14_999), ok("hi"))).await, Ok(2));
    assert_eq!(outcome(&answering(plain(), ms(15_001), ok("hi"))).await, Err(GuardError::TimedOut(ConnectStage::Exchange)));
    let sooner = Fetch { within: Some(ms(100)), ..Fetch::get("http://a.example/") };
    assert!(answering(plain(), ms(99), ok("hi")).fetch(sooner.clone()).await.is_ok());
    let fault = answering(plain(), ms(101), ok("hi")).fetch(sooner).await.unwrap_err();
    assert_eq!(fault, GuardError::TimedOut(ConnectStage::Exchange));
}

#[tokio::test(start_paused = true)]
async fn connect_ms_is_3000_for_the_look_up_and_all_addresses_together() {
    for (wait, reached) in [(2_999, true), (3_001, false)] {
        let dialer = Dialer::new(move |_| async move {
            sleep(ms(wait)).await;
            Err::<Dialled, _>(io::ErrorKind::ConnectionRefused.into())
        });
        let fault = outcome(&guard(plain(), &Names::always(&[PUBLIC]), &dialer).client()).await.unwrap_err();
        match reached {
            true => assert!(matches!(fault, GuardError::Unreachable(_)), "{fault}"),
            false => assert_eq!(fault, GuardError::TimedOut(ConnectStage::Connect)),
        }
    }
    // Three silent addresses take their shares, the fourth still gets its turn; the whole takes no longer.
    let names = Names::always(&["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]);
    let dialer = Dialer::new(async |_| std::future::pending::<io::Result<Dialled>>().await);
    let began = tokio::time::Instant::now();
    assert_eq!(outcome(&guard(plain(), &names, &dialer).client()).await, Err(GuardError::TimedOut(ConnectStage::Connect)));
    assert_eq!((dialer.dialled().len(), began.elapsed().as_millis() / 10), (4, 300));
}

#[tokio::test(start_paused = true)]
async fn tls_ms_is_5000() {
    let authority = Authority::new("tls-ms");
    for (wait, reached) in [(4_999, true), (5_001, false)] {
        let acceptor = authority.acceptor(&["a.example"], &["http/1.1"], None);
        let dialer = Dialer::in_memory(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                sleep(ms(wait)).await;
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                read_head(&mut stream).await;
                let _ = stream.write_all(ok("hi").as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        let client = guard(authority.trusted(), &Names::always(&[PUBLIC]), &dialer).client();
        let fetched = client.fetch(Fetch::get("https://a.example/")).await.map(|fetched| fetched.body.len());
        assert_eq!(fetched, if reached { Ok(2) } else { Err(GuardError::TimedOut(ConnectStage::Tls)) });
    }
}

#[tokio::test(start_paused = true)]
async fn response_header_bytes_is_16384() {
    let with = |bytes: usize| {
        // "content-length: 2" counts 19, the name of the other one and its punctuation 5.
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: {}\r\n\r\nhi", "h".repeat(bytes - 24));
        answering(plain(), Duration::ZERO, answer)
    };
    assert_eq!(outcome(&with(16_384)).await, Ok(2));
    assert_eq!(outcome(&with(16_385)).await, Err(GuardError::TooBig(Whole::Headers)));
    assert_eq!(outcome(&with(60_000)).await, Err(GuardError::TooBig(Whole::Headers)));
}

#[tokio::test(start_paused = true)]
async fn response_body_bytes_is_16384_and_a_caller_may_set_another() {
    let announced = |bytes: usize| ok(&"b".repeat(bytes));
    let chunked = |bytes: usize| {
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{bytes:x}\r\n{}\r\n0\r\n\r\n", "b".repeat(bytes))
    };
    for answer in [&announced as &dyn Fn(usize) -> String, &chunked] {
        assert_eq!(outcome(&answering(plain(), Duration::ZERO, answer(16_384))).await, Ok(16_384));
        assert_eq!(outcome(&answering(plain(), Duration::ZERO, answer(16_385))).await, Err(GuardError::TooBig(Whole::Body)));
        for (most, fits) in [(100_000, true), (99_999, false)] {
            let fetch = Fetch { most_bytes: Some(most), ..Fetch::get("http://a.example/") };
            let fetched = answering(plain(), Duration::ZERO, answer(100_000)).fetch(fetch).await;
            assert_eq!(
                fetched.map(|fetched| fetched.body.len()),
                if fits { Ok(100_000) } else { Err(GuardError::TooBig(Whole::Body)) }
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn informational_responses_is_8() {
    let with = |count: usize| answering(plain(), Duration::ZERO, "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count) + &ok("hi"));
    assert_eq!(outcome(&with(8)).await, Ok(2));
    assert_eq!(outcome(&with(9)).await, Err(GuardError::TooBig(Whole::Informational)));
}

#[test]
fn url_bytes_is_2048() {
    let guard = chancery_outbound::Guard::new(GuardConfig::default(), &[]).unwrap();
    let url = |bytes: usize| format!("https://a.example/{}", "p".repeat(bytes - 18));
    assert_eq!(guard.check(&url(2_048)).unwrap().url().as_str().len(), 2_048);
    assert_eq!(guard.check(&url(2_049)).unwrap_err(), Blocked::TooLong(2_048));
    // What grows when it is normalised counts as it will be sent.
    let growing = format!("https://a.example/{}", "ü".repeat(400));
    assert_eq!(guard.check(&growing).unwrap_err(), Blocked::TooLong(2_048));
}

#[tokio::test]
async fn addresses_is_4() {
    let all = ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4", "1.1.1.5"];
    for (good, reached) in [("1.1.1.4", true), ("1.1.1.5", false)] {
        let dialer = Dialer::new(move |address: std::net::SocketAddr| async move {
            if address.ip().to_string() != good {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (ours, mut theirs) = tokio::io::duplex(4096);
            tokio::spawn(async move {
                read_head(&mut theirs).await;
                let _ = theirs.write_all(ok("hi").as_bytes()).await;
            });
            Ok(Dialled { stream: Box::new(ours), peer: address })
        });
        let got = outcome(&guard(plain(), &Names::always(&all), &dialer).client()).await;
        assert_eq!((got.is_ok(), dialer.dialled().len()), (reached, 4));
    }
}
