//! What may not be registered, and what nobody may be told.

use chancery_protocol::{AuthenticationInfo, ErrorKind, ListPushConfigs, PushConfig, PushConfigRef, Request, TaskId, Version};

use super::{Client, config, server};
use crate::support::wire_client::{Combination, RawCall};

#[tokio::test]
async fn urls_that_lead_inside_or_nowhere_are_refused_by_their_text() {
    let server = server("");
    for combination in Combination::ALL {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let task = client.ended_task("refused-urls").await;
        for url in [
            "http://hooks.example/",
            "https://127.0.0.1/",
            "https://10.1.2.3/x",
            "https://[::1]/",
            "https://[::ffff:169.254.169.254]/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://localhost/",
            "https://localhost./",
            "https://metadata.google.internal/",
            "https://user:pass@hooks.example/",
            "https://hooks.example/#part",
            "https://hooks.example:22/",
            "https://hooks.example:6379/",
            "ftp://hooks.example/",
            "file:///etc/passwd",
            "https://hooks.example/a b",
            "https://hooks.example/\r\nX: y",
            "hooks.example",
            "https://",
        ] {
            let refusal = client.create(config(Some(&task), None, url)).await.unwrap_err();
            refusal.check(ErrorKind::InvalidParams, combination).unwrap_or_else(|fault| panic!("{name} {url:?}: {fault}"));
            refusal.check_field("url", combination).unwrap_or_else(|fault| panic!("{name} {url:?}: {fault}"));
        }
        client.create(config(Some(&task), None, "https://name-that-nobody-has.example/")).await.expect("names are not looked up");
    }
}

#[tokio::test]
async fn what_could_not_be_sent_in_a_header_is_refused() {
    let server = server("");
    for combination in Combination::ALL {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let task = client.ended_task("refused-headers").await;
        let given = |token: Option<&str>, scheme: &str, credentials: &str| PushConfig {
            token: token.map(str::to_owned),
            authentication: Some(AuthenticationInfo { scheme: scheme.to_owned(), credentials: Some(credentials.to_owned()) }),
            ..config(Some(&task), None, "https://hooks.example/")
        };
        let cases = [
            (given(Some("a\r\nX-Evil: 1"), "Bearer", "c"), "token"),
            (given(Some("caf\u{e9}"), "Bearer", "c"), "token"),
            (given(Some(" a"), "Bearer", "c"), "token"),
            (given(None, "Bear er", "c"), "authentication.scheme"),
            (given(None, "Bearer:", "c"), "authentication.scheme"),
            (given(None, "Bearer", "c\nd"), "authentication.credentials"),
            (given(None, "Bearer", "c\u{0}"), "authentication.credentials"),
        ];
        for (given, field) in cases {
            let refusal = client.create(given.clone()).await.unwrap_err();
            refusal.check(ErrorKind::InvalidParams, combination).unwrap_or_else(|fault| panic!("{name} {given:?}: {fault}"));
            refusal.check_field(field, combination).unwrap_or_else(|fault| panic!("{name} {given:?}: {fault}"));
        }
        client.create(given(Some("fine ~!"), "X-Own.1", "user:pass word")).await.expect(&name);
    }
}

#[tokio::test]
async fn a_task_that_is_not_there_has_no_webhooks() {
    let server = server("");
    for combination in Combination::ALL {
        let client = Client::new(&server, combination);
        let nobody = TaskId::from("01907a3c-5b1e-7c44-9d6e-2f1a0b3c4d5e");
        let which = PushConfigRef { tenant: None, task_id: nobody.clone(), id: Some("c".to_owned()) };
        let list = ListPushConfigs { tenant: None, task_id: nobody.clone(), page_size: None, page_token: None };
        let requests = [
            Request::CreatePushConfig(config(Some(&nobody), None, "https://hooks.example/")),
            Request::GetPushConfig(which.clone()),
            Request::ListPushConfigs(list),
            Request::DeletePushConfig(which),
        ];
        for request in requests.into_iter().filter(|request| RawCall::of(combination, request).is_some()) {
            let operation = request.operation();
            let refusal = client.call(request).await.expect_err("there is no such task");
            refusal.check(ErrorKind::TaskNotFound, combination).unwrap_or_else(|fault| panic!("{operation:?}: {fault}"));
        }
    }
}

#[tokio::test]
async fn where_webhooks_are_switched_off_every_operation_says_so() {
    let server = server("enabled = false");
    for combination in Combination::ALL {
        let client = Client::new(&server, combination);
        let task = client.ended_task("switched-off").await;
        let which = PushConfigRef { tenant: None, task_id: task.clone(), id: Some("c".to_owned()) };
        let list = ListPushConfigs { tenant: None, task_id: task.clone(), page_size: None, page_token: None };
        let mut inline = client.message("complete", "switched-off-too");
        inline.configuration.task_push_notification_config = Some(Box::new(config(None, None, "https://hooks.example/")));
        let requests = [
            Request::SendMessage(inline),
            Request::CreatePushConfig(config(Some(&task), Some("c"), "https://hooks.example/")),
            Request::GetPushConfig(which.clone()),
            Request::ListPushConfigs(list),
            Request::DeletePushConfig(which),
        ];
        for request in requests.into_iter().filter(|request| RawCall::of(combination, request).is_some()) {
            let operation = request.operation();
            let refusal = client.call(request).await.expect_err("there is no push");
            let refused = refusal.check(ErrorKind::PushNotificationNotSupported, combination);
            refused.unwrap_or_else(|fault| panic!("{operation:?} over {}: {fault}", combination.name()));
        }
    }
    assert_eq!(Combination::ALL[0].version, Version::V1_0);
}
