//! F5: the node's clock is set by an hour or a day, either way, while deliveries go on. Nobody waits longer for that, nobody is hurried, and
//! what is under way stays whose it is. (How far a receiver's clock may be off is tested with the signatures.)

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chancery_core::Clock;
use chancery_protocol::Timestamp;
use tokio::time::Instant;

use crate::push::network::{Act, Network, Seen};
use crate::push::push_plane::{PushPlane, config};

const SETTINGS: [i64; 4] = [3_600, -3_600, 86_400, -86_400];

fn waits(seen: &[Seen]) -> Vec<f64> {
    seen.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_is_tried_again_as_planned_however_the_clock_is_set() {
    for seconds in SETTINGS {
        let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Answer(503)));
        push_plane.start();
        push_plane.task("0", "https://hooks.example/").await;
        for set_after in [3, 20, 60] {
            tokio::time::sleep(Duration::from_secs(set_after)).await;
            push_plane.clock.set_by(seconds);
        }
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        let waits = waits(&push_plane.network.seen());
        // The schedule has 1, 5, 30, 120 and 600 seconds, a fifth more or less.
        let planned = [1.0, 5.0, 30.0, 120.0, 600.0];
        assert_eq!(waits.len(), planned.len(), "set by {seconds}: {waits:?}");
        for (wait, planned) in waits.iter().zip(planned) {
            assert!((0.8 * planned..1.2 * planned + 1.0).contains(wait), "set by {seconds}: {waits:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_stays_with_its_holder_and_comes_once() {
    for seconds in SETTINGS {
        let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Slow(200, Duration::from_secs(10))));
        push_plane.start();
        let mut tasks = Vec::new();
        for number in 0..20 {
            tasks.push(push_plane.begun("0", &format!("https://h{number}.example/")).await);
        }
        tokio::time::sleep(Duration::from_secs(4)).await;
        push_plane.clock.set_by(seconds);
        // Something new makes the engine look.
        tasks.push(push_plane.begun("0", "https://new.example/").await);
        tokio::time::sleep(Duration::from_secs(4)).await;
        push_plane.clock.set_by(-seconds);
        tasks.push(push_plane.begun("0", "https://newer.example/").await);
        assert!(push_plane.drained(Duration::from_secs(120)).await, "set by {seconds}");
        // Two at once of one lane would have been noticed by the network.
        assert_eq!(push_plane.network.seen().len(), 2 * tasks.len(), "set by {seconds}: each entry once");
        assert_eq!(push_plane.engine.metrics().fenced.read(), 0, "set by {seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_hurried_and_what_is_new_is_told_at_once() {
    for seconds in SETTINGS {
        let push_plane = PushPlane::new(Network::new(|registration, _, _| match registration.url.contains("failing") {
            true => Act::Answer(503),
            false => Act::Answer(200),
        }));
        push_plane.start();
        for number in 0..200 {
            push_plane.begun("0", &format!("https://failing-{number}.example/")).await;
        }
        // Everybody has failed at 0, about 1 and about 6 seconds, and waits for half a minute now.
        tokio::time::sleep(Duration::from_secs(12)).await;
        let before = push_plane.network.seen().len();
        assert_eq!(before, 600);
        push_plane.clock.set_by(seconds);
        let set = Instant::now();
        push_plane.begun("0", "https://healthy.example/").await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let after = push_plane.network.seen();
        let (herd, told): (Vec<_>, Vec<_>) = after[before..].iter().partition(|seen| !seen.taken);
        assert!(herd.is_empty(), "set by {seconds}: {} were tried too soon", herd.len());
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|seen| seen.at - set < Duration::from_secs(1)), "set by {seconds}");
        tokio::time::sleep(Duration::from_secs(30)).await;
        let again = push_plane.network.seen().len() - before - 2;
        assert_eq!(again, 200, "set by {seconds}: and then everybody was tried again, once");
    }
}

#[tokio::test(start_paused = true)]
async fn signatures_have_the_time_of_the_clock_as_it_is_now() {
    for seconds in SETTINGS {
        let told: Arc<Mutex<Vec<Timestamp>>> = Arc::default();
        let push_plane = PushPlane::with(
            Network::new({
                let told = Arc::clone(&told);
                move |_, _, how| {
                    told.lock().unwrap().push(how.now);
                    Act::Answer(200)
                }
            }),
            config(),
        );
        push_plane.start();
        push_plane.task("0", "https://hooks.example/").await;
        push_plane.clock.set_by(seconds);
        push_plane.task("0", "https://hooks.example/").await;
        assert!(push_plane.drained(Duration::from_secs(60)).await);
        let (told, now) = (told.lock().unwrap().clone(), push_plane.clock.now());
        let off = |told: Timestamp| (now.micros() - told.micros()).abs() / 1_000_000;
        assert!(told[2..].iter().all(|told| off(*told) < 120), "set by {seconds}: {told:?}, but it is {now}");
    }
}
