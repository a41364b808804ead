//! A redirect is a failure, whatever its number and wherever it points.

use chancery_outbound::guard::{Fetch, Guard, GuardError, Outer};

use crate::guard::fakes::loopback;
use crate::guard::receiver::{Receiver, ok};

#[tokio::test]
async fn no_redirect_is_followed() {
    let canary = Receiver::saying(ok("inside")).await;
    let places = [
        canary.url("/"),
        format!("//{}/", canary.address),
        "/elsewhere".to_owned(),
        "elsewhere".to_owned(),
        "?again".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        String::new(),
    ];
    let client = Guard::new(loopback(), &[]).unwrap().client();
    for status in [300, 301, 302, 303, 305, 306, 307, 308, 399] {
        for place in &places {
            let answer = format!("HTTP/1.1 {status} Gone\r\nlocation: {place}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let receiver = Receiver::saying(answer).await;
            let fault = client.fetch(Fetch::post(receiver.url("/hook"), "{}")).await.unwrap_err();
            assert!(matches!(fault, GuardError::Redirect(code) if code == status), "{status} {place}: {fault}");
            assert_eq!(fault.outer(), Outer::BadAnswer);
            let fault = client.stream(Fetch::get(receiver.url("/hook"))).await.map(|_| ()).unwrap_err();
            assert!(matches!(fault, GuardError::Redirect(_)), "{status} {place}: {fault}");
            assert_eq!(receiver.accepted(), 2, "{status} {place}");
        }
    }
    assert_eq!(canary.accepted(), 0);
}

#[tokio::test]
async fn a_refresh_header_and_a_location_on_success_are_only_headers() {
    let canary = Receiver::saying(ok("inside")).await;
    let answer = format!(
        "HTTP/1.1 200 OK\r\nrefresh: 0; url={0}\r\nlocation: {0}\r\ncontent-location: {0}\r\nset-cookie: a=b\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi",
        canary.url("/")
    );
    let receiver = Receiver::saying(answer).await;
    let client = Guard::new(loopback(), &[]).unwrap().client();
    for _ in 0..2 {
        let fetched = client.fetch(Fetch::get(receiver.url("/"))).await.unwrap();
        assert_eq!((fetched.status.as_u16(), fetched.body.as_ref()), (200, &b"hi"[..]));
    }
    assert_eq!((receiver.accepted(), canary.accepted()), (2, 0));
}

#[tokio::test]
async fn not_modified_is_an_answer_and_no_redirect() {
    let receiver = Receiver::saying("HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\nconnection: close\r\n\r\n").await;
    let client = Guard::new(loopback(), &[]).unwrap().client();
    assert_eq!(client.fetch(Fetch::get(receiver.url("/"))).await.unwrap().status, 304);
}
