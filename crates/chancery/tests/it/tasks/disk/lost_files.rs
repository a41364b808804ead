//! A file of the data folder that is gone or empty at a start: the log says so, and what follows from it.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::push::LOCAL;
use crate::push::receiver::{Act, Receiver};
use crate::support::server::{Home, Server, Setup};

fn start(home: &Home) -> Server {
    Setup::in_home(home).args(["--agent", "conformance"]).config(LOCAL).start()
}

fn warnings(server: &Server) -> Vec<String> {
    server.log().lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_file_that_is_gone_or_empty_is_said_at_the_start_with_what_follows() {
    let home = Home::new();
    let server = start(&home);
    let receiver = Receiver::new(|_| Act::Slow(200, Duration::ZERO)).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
    let webhook = json!({ "id": "w", "url": receiver.url("/hook"), "token": "secret" });
    let configuration = json!({ "taskPushNotificationConfig": webhook, "returnImmediately": true });
    let sent = server.call("SendMessage", json!({ "message": message, "configuration": configuration })).await;
    assert!(sent["result"]["task"].is_object(), "{sent}");
    let at_first = warnings(&server);
    let about_files = |lines: &[String]| -> Vec<&str> {
        let files = ["keys.json", "vault.json", "admin.token"];
        files.into_iter().filter(|file| lines.iter().any(|line| line.contains(file))).collect()
    };
    assert_eq!(about_files(&at_first), [""; 0], "{at_first:#?}");
    assert!(server.terminate().0.success());

    let server = start(&home);
    assert_eq!(about_files(&warnings(&server)), [""; 0], "nothing is missing at a second start");
    assert!(server.terminate().0.success());

    let token = fs::read_to_string(home.data().join("admin.token")).expect("a token");
    fs::remove_file(home.data().join("keys.json")).expect("keys");
    fs::remove_file(home.data().join("vault.json")).expect("a vault");
    fs::write(home.data().join("admin.token"), "").expect("the token can be emptied");
    let server = start(&home);
    let said = warnings(&server);
    for (file, follows) in [
        ("keys.json", "the node made new signing keys"),
        ("vault.json", "cannot open the secrets of webhooks"),
        ("admin.token", "rejects programs with the old token"),
    ] {
        assert!(said.iter().any(|line| line.contains(file) && line.contains(follows)), "{file}: {said:#?}");
    }
    let admin = |token: String| {
        let request = reqwest::Client::new().get(format!("{}/admin/v1/node", server.url())).bearer_auth(token);
        async move { request.send().await.expect("an answer").status().as_u16() }
    };
    assert_eq!(admin(token.trim().to_owned()).await, 401);
    assert_eq!(admin(String::new()).await, 401, "an empty token is nobody's");
    let anew = fs::read_to_string(home.data().join("admin.token")).expect("a token");
    assert_eq!(admin(anew.trim().to_owned()).await, 200);
}
