//! F1: the built server is killed in the middle of its deliveries, again and again. Receivers get everything, in order, and a copy only of
//! what was under way.

use std::time::Duration;

use serde_json::json;

use super::journal::{Journal, all_lanes, path};
use crate::push::lasting;
use crate::push::receiver::{Act, Receiver};
use crate::support::counts::full_counts;
use crate::support::line::{Beside, Line};
use crate::support::patience::soon;
use crate::support::server::Home;
use crate::tasks::crash::chance::Chance;

/// How long the receiver takes for each, so that a kill finds many under way.
const HOLD: Duration = Duration::from_millis(200);
/// Deliveries under way to one origin, and acknowledgements that share one commit: so much may come twice after a kill, and no more.
const MOST_COPIES: usize = 32 + 256;
/// The lease outlasts the test: whoever waited for it would not come to an end.
const LINES: &str = "barrier_ms = 0\nhost_requests_per_second = 0\nlease_ms = 600000\n[limits]\ncalls_per_second_per_caller = 0\n\
                     calls_per_second_per_address = 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_in_the_middle_of_deliveries_lose_nothing_and_repeat_only_what_was_under_way() {
    let (kills, a_run) = (full_counts(8, 100), full_counts(8, 10));
    let mut chance = Chance::new("kills in the middle of deliveries");
    let receiver = Receiver::new(|_| Act::Slow(200, HOLD)).await;
    let home = Home::new();
    let mut ends = Vec::new();
    for kill in 0..kills {
        let server = lasting(&home, LINES);
        let line = Line::to(server.url(), "");
        let url = receiver.url("");
        let sending = tokio::spawn(async move {
            for number in 0..a_run {
                let config = format!("{kill}-{number}");
                let message = json!({ "messageId": config, "role": "ROLE_USER", "parts": [{ "text": "stream 3" }] });
                let webhook = json!({ "id": config, "url": format!("{url}{}", path(&config)) });
                let configuration = json!({ "taskPushNotificationConfig": webhook, "returnImmediately": true });
                let params = json!({ "message": message, "configuration": configuration });
                match line.call("SendMessage", &params, Beside::default()).await {
                    Ok(answer) => assert!(answer["result"]["task"].is_object(), "{answer}"),
                    // The kill came first. Whether there is a task now is for the server to say.
                    Err(_) => return,
                }
            }
        });
        tokio::time::sleep(Duration::from_millis(chance.within(20..=500))).await;
        server.kill();
        sending.await.expect("a sender does not panic");
        ends.push(receiver.got().len());
    }
    let server = lasting(&home, LINES);
    let nothing_left = async || {
        // The list is long, and whoever makes it delivers nothing meanwhile.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let pending = all_lanes(&server).await.iter().map(|lane| lane["pending"].as_u64().unwrap_or(1)).sum::<u64>();
        (pending == 0).then_some(())
    };
    soon("everything is delivered", nothing_left).await;

    let got = receiver.got();
    let mut journal = Journal::read(&got, &ends, |_| false);
    let lanes = journal.hold(&server).await;
    let copies: usize = journal.copies.values().sum();
    let most = journal.copies.values().max().copied().unwrap_or(0);
    println!("{kills} kills, {lanes} registrations, {} requests, {copies} copies, at most {most} after one kill", got.len());
    assert!(journal.complaints.is_empty(), "{} complaints: {:#?}", journal.complaints.len(), journal.complaints);
    assert!(most <= MOST_COPIES, "{:?}", journal.copies);
    // What there was to find, lest the promise be kept by silence.
    assert!(lanes > kills && got.len() > 4 * lanes && copies >= kills / 2, "{lanes} {} {copies}", got.len());
}
