//! The named limits on webhooks at their edges: what is exactly at one passes, one more is refused in words that name it.

use chancery_protocol::{AuthenticationInfo, ErrorKind, PushConfig};

use super::{Client, config, server};
use crate::support::wire_client::Combination;

async fn refused(client: &Client, given: PushConfig, kind: ErrorKind, limit: &str) {
    let refusal = client.create(given).await.expect_err(limit);
    refusal.check(kind, client.wire.combination).expect(limit);
    let words = format!("{} {refusal:?}", refusal.message());
    assert!(words.contains(limit), "{words}");
}

#[tokio::test]
async fn a_webhook_is_as_long_as_it_may_be_and_no_longer() {
    let server = server("");
    let client = Client::new(&server, Combination::ALL[0]);
    let task = client.ended_task("").await;
    let base = config(Some(&task), Some("a"), "https://hooks.example/");
    let url = |bytes: usize| PushConfig { url: format!("https://hooks.example/{}", "x".repeat(bytes - 22)), ..base.clone() };
    client.create(url(2_048)).await.expect("at the limit");
    refused(&client, url(2_049), ErrorKind::InvalidParams, "push.url_bytes").await;
    let token = |bytes| PushConfig { token: Some("x".repeat(bytes)), ..base.clone() };
    client.create(token(4_096)).await.expect("at the limit");
    refused(&client, token(4_097), ErrorKind::InvalidParams, "push.token_bytes").await;
    let credentials = |bytes| {
        let authentication = AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("x".repeat(bytes)) };
        PushConfig { authentication: Some(authentication), ..base.clone() }
    };
    client.create(credentials(8_192)).await.expect("at the limit");
    refused(&client, credentials(8_193), ErrorKind::InvalidParams, "push.credentials_bytes").await;
}

#[tokio::test]
async fn a_task_and_a_tenant_have_as_many_webhooks_as_they_may_and_no_more() {
    let server = server("configs_per_tenant = 12");
    let client = Client::new(&server, Combination::ALL[0]);
    let (first, second) = (client.ended_task("").await, client.ended_task("").await);
    let new = |task| config(Some(task), None, "https://hooks.example/");
    for _ in 0..10 {
        client.create(new(&first)).await.expect("within the limit");
    }
    refused(&client, new(&first), ErrorKind::LimitReached, "push.configs_per_task").await;
    for _ in 0..2 {
        client.create(new(&second)).await.expect("within the limit");
    }
    refused(&client, new(&second), ErrorKind::LimitReached, "push.configs_per_tenant").await;
    let mut inline = client.message("complete", "");
    inline.configuration.task_push_notification_config = Some(Box::new(config(None, None, "https://hooks.example/")));
    client.send(inline).await.unwrap_err().check(ErrorKind::LimitReached, client.wire.combination).unwrap();
    let id = client.list(&second, None).await.unwrap().configs[0].id.clone().unwrap();
    client.delete(&second, &id).await.unwrap();
    client.create(new(&second)).await.expect("there is room again");
}

#[tokio::test]
async fn a_page_of_webhooks_is_as_large_as_it_may_be_and_no_larger() {
    let server = server("page_size = 3");
    let client = Client::new(&server, Combination::ALL[0]);
    let task = client.ended_task("").await;
    for _ in 0..4 {
        client.create(config(Some(&task), None, "https://hooks.example/")).await.unwrap();
    }
    assert_eq!(client.list(&task, None).await.unwrap().configs.len(), 3);
    assert_eq!(client.list(&task, Some((3, ""))).await.unwrap().configs.len(), 3);
    let refusal = client.list(&task, Some((4, ""))).await.unwrap_err();
    assert!(refusal.message().contains("push.page_size = 3"), "{}", refusal.message());
}
