//! Each version's own manners: setting and creating, names that are left out, what is shown of secrets.

use chancery_protocol::{ErrorKind, Version};

use super::{Client, bearer, config, server, with_lists};
use crate::support::wire_client::Combination;

#[tokio::test]
async fn what_is_registered_is_read_listed_and_deleted_over_every_binding_in_every_version() {
    let server = server("");
    for combination in with_lists() {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let task = client.ended_task("").await;
        let made = client.create(config(Some(&task), Some("mine"), "https://hooks.example/a?b=c")).await.expect(&name);
        assert_eq!(made, config(Some(&task), Some("mine"), "https://hooks.example/a?b=c"), "{name}");
        assert_eq!(client.get(&task, Some("mine")).await.expect(&name), made, "{name}");
        assert_eq!(client.list(&task, None).await.expect(&name).configs, [made], "{name}");
        client.delete(&task, "mine").await.expect(&name);
        client.get(&task, Some("mine")).await.unwrap_err().check(ErrorKind::TaskNotFound, combination).expect(&name);
        client.delete(&task, "mine").await.expect("a second time is as good");
        assert!(client.urls(&task).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn the_original_has_one_for_each_task_which_is_set_again_and_again() {
    let server = server("");
    let combination = Combination::ALL[6];
    let client = Client::new(&server, combination);
    let task = client.ended_task("named-by-its-client").await;
    client.get(&task, None).await.unwrap_err().check(ErrorKind::TaskNotFound, combination).unwrap();
    for url in ["https://hooks.example/1", "https://hooks.example/2"] {
        let set = client.create(config(Some(&task), None, url)).await.unwrap();
        assert_eq!((set.task_id.as_ref(), set.url.as_str()), (Some(&task), url), "the task by the name the client gave it");
        assert_eq!(client.get(&task, None).await.unwrap().url, url);
    }
}

#[tokio::test]
async fn without_a_name_the_older_version_sets_the_tasks_own_and_the_newer_creates_another_each_time() {
    let server = server("");
    for combination in with_lists() {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let task = client.ended_task("").await;
        let first = client.create(config(Some(&task), None, "https://hooks.example/1")).await.expect(&name);
        let second = client.create(config(Some(&task), None, "https://hooks.example/2")).await.expect(&name);
        if combination.version == Version::V0_3 {
            assert_eq!(first.id.as_deref(), Some(task.as_str()), "{name}");
            assert_eq!(first.id, second.id, "{name}");
            assert_eq!(client.urls(&task).await, ["https://hooks.example/2"], "{name}");
        } else {
            assert_ne!(first.id, second.id, "{name}");
            assert_eq!(client.urls(&task).await, ["https://hooks.example/1", "https://hooks.example/2"], "{name}");
        }
    }
}

#[tokio::test]
async fn the_same_name_is_the_same_one_in_every_version() {
    let server = server("");
    for combination in with_lists() {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let task = client.ended_task("").await;
        for url in ["https://hooks.example/1", "https://hooks.example/2"] {
            client.create(config(Some(&task), Some("a"), url)).await.expect(&name);
        }
        assert_eq!(client.urls(&task).await, ["https://hooks.example/2"], "{name}");
    }
}

#[tokio::test]
async fn the_older_version_reads_the_tasks_own_or_else_the_first_without_a_name() {
    let server = server("");
    let combination = Combination::ALL[3];
    let client = Client::new(&server, combination);
    let task = client.ended_task("").await;
    client.create(config(Some(&task), Some("first"), "https://hooks.example/first")).await.unwrap();
    client.create(config(Some(&task), Some("second"), "https://hooks.example/second")).await.unwrap();
    assert_eq!(client.get(&task, None).await.unwrap().url, "https://hooks.example/first");
    client.create(config(Some(&task), None, "https://hooks.example/own")).await.unwrap();
    assert_eq!(client.get(&task, None).await.unwrap().url, "https://hooks.example/own");
}

#[tokio::test]
async fn what_one_version_registered_the_others_see_and_secrets_nobody_does() {
    for (setting, shown) in [("", false), ("show_secrets = true", true)] {
        let server = server(setting);
        let clients: Vec<_> = with_lists().map(|combination| Client::new(&server, combination)).collect();
        let task = clients[0].ended_task("").await;
        for (number, client) in clients.iter().enumerate() {
            let mut given = config(Some(&task), Some(&format!("c{number}")), "https://hooks.example/");
            given.token = Some("the-token-itself".to_owned());
            given.authentication = bearer("the-credentials-themselves");
            let made = client.create(given.clone()).await.expect("it is taken");
            assert_eq!(made, given, "whoever registers it knows it already");
        }
        for client in &clients {
            let name = client.wire.combination.name();
            let page = client.list(&task, None).await.expect(&name);
            assert_eq!(page.configs.len(), clients.len(), "{name}");
            for config in page.configs.into_iter().chain([client.get(&task, Some("c0")).await.expect(&name)]) {
                let authentication = config.authentication.expect("the scheme is no secret");
                assert_eq!(authentication.scheme, "Bearer", "{name}");
                assert_eq!(config.token.is_some(), shown, "{name}");
                assert_eq!(authentication.credentials.is_some(), shown, "{name}");
            }
        }
        assert!(!server.log().contains("the-token-itself") && !server.log().contains("the-credentials-themselves"));
    }
}

#[tokio::test]
async fn lists_come_in_pages_where_the_version_has_them() {
    let server = server("");
    for combination in Combination::ALL.into_iter().filter(|combination| combination.version == Version::V1_0) {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let (task, other) = (client.ended_task("").await, client.ended_task("").await);
        for number in 0..5 {
            client.create(config(Some(&task), None, &format!("https://hooks.example/{number}"))).await.expect(&name);
        }
        let mut seen = Vec::new();
        let mut token = String::new();
        let mut pages = 0;
        loop {
            let page = client.list(&task, Some((2, &token))).await.expect(&name);
            seen.extend(page.configs.into_iter().map(|config| config.url));
            pages += 1;
            if page.next_page_token.is_empty() {
                break;
            }
            token = page.next_page_token;
        }
        assert_eq!(pages, 3, "{name}");
        assert_eq!(seen, (0..5).map(|number| format!("https://hooks.example/{number}")).collect::<Vec<_>>(), "{name}");
        for (of, size, token, field) in
            [(&other, 2, token.as_str(), "pageToken"), (&task, 2, "AAAA", "pageToken"), (&task, 101, "", "pageSize")]
        {
            let refusal = client.list(of, Some((size, token))).await.unwrap_err();
            refusal.check(ErrorKind::InvalidParams, combination).expect(&name);
            refusal.check_field(field, combination).expect(&name);
        }
    }
}

#[tokio::test]
async fn every_card_says_that_there_are_webhooks() {
    for (setting, there) in [("", true), ("enabled = false", false)] {
        let server = server(setting);
        let cards = [
            ("/.well-known/agent-card.json", Some("1.0")),
            ("/.well-known/agent-card.json", Some("0.3")),
            ("/.well-known/agent-card.json", None),
            ("/.well-known/agent.json", None),
        ];
        for (path, version) in cards {
            let request = reqwest::Client::new().get(format!("{}{path}", server.url()));
            let request = version.iter().fold(request, |request, version| request.header("A2A-Version", *version));
            let card: serde_json::Value = request.send().await.unwrap().json().await.unwrap();
            let said = card["capabilities"]["pushNotifications"] == true;
            assert_eq!(said, there, "{path} {version:?} {card}");
        }
    }
}
