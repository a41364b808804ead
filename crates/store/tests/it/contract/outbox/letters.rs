//! What is kept of deliveries: letters, receipts, attempts.

use chancery_core::push::{
    DeadFilter, DeadReason, LaneAction, LaneFilter, LaneStep, LaneSweep, Outbox, ReplayStep, Span, StateChange,
};
use chancery_core::{Append, Store};
use chancery_protocol::Timestamp;

use super::{LEASE, attempt, claim, letter, new, receipt, step};
use crate::contract::sample::{Opened, at, creation, on_every_store, pieces, task};

on_every_store! {
    what_is_given_up_is_kept_with_all_there_is_to_know,
    what_is_exhausted_is_one_letter_for_all_of_it,
    letters_are_found_by_what_is_said_of_them,
    letters_are_delivered_again_in_the_order_of_their_tasks,
    a_letter_that_was_taken_is_forgotten_and_one_that_was_not_stays,
    letters_of_a_webhook_that_is_gone_are_not_delivered_again,
    letters_are_purged_by_what_is_said_of_them,
    receipts_are_a_chain_for_each_lane,
    of_the_attempts_only_the_newest_are_kept,
    nothing_is_kept_of_a_step_that_is_fenced,
    what_is_old_goes_a_part_at_a_time,
}

async fn told(store: &dyn Store, id: &str, origin: &str) {
    let task = task(id);
    store.append(Append { register: Some(Box::new(new(&task, "w", origin))), ..creation(&task) }).await.unwrap();
}

fn reject(lane: &chancery_core::push::Lane, now: Timestamp) -> LaneStep {
    let span = Span::single(lane.cursor.head);
    let rejected = LaneAction::Reject { span, reason: DeadReason::Rejected, unauthorized: false, disable: None, keep: None };
    LaneStep { dead: Some(letter(lane, now)), ..step(lane, rejected, now) }
}

/// One dead letter for each of these tasks, by their names and origins, given up at these moments.
async fn dead(store: &dyn Store, outbox: &dyn Outbox, letters: &[(&str, &str, i64)]) {
    for (id, origin, when) in letters {
        told(store, id, origin).await;
        let lane = claim(outbox, at(1_000_000)).await.remove(0);
        outbox.settle_lanes(vec![reject(&lane, at(*when))]).await.unwrap();
    }
}

async fn found(outbox: &dyn Outbox, filter: &DeadFilter) -> Vec<String> {
    let page = outbox.dead_letters(filter, 0, 100).await.unwrap();
    page.letters.iter().map(|letter| letter.task.to_string()).collect()
}

async fn what_is_given_up_is_kept_with_all_there_is_to_know(Opened { store, outbox, .. }: Opened) {
    told(&*store, "t1", "https://a:443").await;
    let lane = claim(&*outbox, at(10_000)).await.remove(0);
    let expected = letter(&lane, at(10_001));
    outbox.settle_lanes(vec![reject(&lane, at(10_001))]).await.unwrap();
    let kept = outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters.remove(0);
    assert_eq!((kept.from, kept.to), (1, 1));
    assert_eq!(kept, chancery_core::push::DeadLetter { id: kept.id, from: 1, to: 1, ..*expected });
    assert_eq!(outbox.dead_letter(kept.id).await.unwrap(), Some(kept.clone()));
    assert_eq!(outbox.dead_letter(kept.id + 1).await.unwrap(), None);
    assert_eq!(outbox.outbox_load().await.unwrap().dead, 1);
    let lane = outbox.lanes(&LaneFilter::default(), 0, 1).await.unwrap().lanes.remove(0);
    assert_eq!(lane.cursor.head, 2, "the lane goes on");
}

async fn what_is_exhausted_is_one_letter_for_all_of_it(Opened { store, outbox, .. }: Opened) {
    told(&*store, "t1", "https://a:443").await;
    let lane = claim(&*outbox, at(10_000)).await.remove(0);
    // Came after the claim: the letter does not speak of it, so it stays.
    store.append(pieces(&task("t1"), 2, 7)).await.unwrap();
    let give_up = LaneAction::GiveUp { reason: chancery_core::push::DisableReason::Exhausted, to: lane.cursor.tail };
    outbox.settle_lanes(vec![LaneStep { dead: Some(letter(&lane, at(5))), ..step(&lane, give_up, at(10_001)) }]).await.unwrap();
    let kept = outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters;
    assert_eq!(kept.iter().map(|letter| (letter.from, letter.to)).collect::<Vec<_>>(), [(1, 1)]);
    let left = outbox.lanes(&LaneFilter::default(), 0, 1).await.unwrap().lanes.remove(0).cursor;
    assert_eq!((left.head, left.tail), (2, 7));
    assert_eq!(outbox.next_due(&[]).await.unwrap(), None);
}

async fn letters_are_found_by_what_is_said_of_them(Opened { store, outbox, .. }: Opened) {
    let (a, b) = ("https://a:443", "https://b:443");
    dead(&*store, &*outbox, &[("t1", a, 100), ("t2", b, 200), ("t3", a, 300)]).await;
    let all = DeadFilter::default();
    assert_eq!(found(&*outbox, &all).await, ["t1", "t2", "t3"]);
    let one = |filter: DeadFilter| {
        let outbox = &outbox;
        async move { found(&**outbox, &filter).await }
    };
    assert_eq!(one(DeadFilter { origin: Some(a.into()), ..all.clone() }).await, ["t1", "t3"]);
    assert_eq!(one(DeadFilter { task: Some("t2".into()), ..all.clone() }).await, ["t2"]);
    assert_eq!(one(DeadFilter { since: Some(at(200)), ..all.clone() }).await, ["t2", "t3"]);
    assert_eq!(one(DeadFilter { until: Some(at(200)), ..all.clone() }).await, ["t1"]);
    assert_eq!(one(DeadFilter { since: Some(at(150)), until: Some(at(250)), ..all.clone() }).await, ["t2"]);
    assert!(one(DeadFilter { tenant: Some("other".into()), ..all.clone() }).await.is_empty());
    assert!(one(DeadFilter { reason: Some("gone".into()), ..all.clone() }).await.is_empty());
    let page = outbox.dead_letters(&all, 0, 2).await.unwrap();
    let rest = outbox.dead_letters(&all, page.next.unwrap(), 2).await.unwrap();
    assert_eq!((page.letters.len(), rest.letters.len(), rest.next), (2, 1, None));
    let of_lane = DeadFilter { lane: Some(page.letters[1].lane), ..all };
    assert_eq!(one(of_lane).await, ["t2"]);
}

async fn letters_are_delivered_again_in_the_order_of_their_tasks(Opened { store, outbox, .. }: Opened) {
    let a = "https://a:443";
    dead(&*store, &*outbox, &[("t3", a, 100), ("t1", a, 200), ("t2", a, 300)]).await;
    // A second one of the same task, later in its log.
    store.append(pieces(&task("t1"), 2, 2)).await.unwrap();
    let lane = claim(&*outbox, at(2_000_000)).await.remove(0);
    outbox.settle_lanes(vec![reject(&lane, at(400))]).await.unwrap();

    assert!(outbox.claim_replays(at(500), LEASE, 10).await.unwrap().is_empty(), "nobody asked yet");
    let part = outbox.replay(&DeadFilter::default(), false, at(500), 0, 3).await.unwrap();
    assert_eq!(part.len(), 3);
    let rest = outbox.replay(&DeadFilter::default(), true, at(500), part[2], 3).await.unwrap();
    assert_eq!(rest.len(), 1, "the next call goes on where the last one stopped");
    assert!(outbox.claim_replays(at(499), LEASE, 10).await.unwrap().is_empty());
    let first = outbox.claim_replays(at(500), LEASE, 3).await.unwrap();
    let order: Vec<_> = first.iter().map(|replay| (replay.letter.task.as_str(), replay.letter.from, replay.new_id)).collect();
    assert_eq!(order, [("t1", 1, false), ("t1", 2, true), ("t2", 1, false)]);
    assert_eq!(first[0].registration.id.as_str(), "w");
    let last = outbox.claim_replays(at(500), LEASE, 3).await.unwrap();
    assert_eq!(last.len(), 1, "those that are claimed are somebody's");
    // Whoever does not come back leaves them to the next.
    assert_eq!(outbox.claim_replays(at(500) + LEASE, LEASE, 10).await.unwrap().len(), 4);
}

async fn a_letter_that_was_taken_is_forgotten_and_one_that_was_not_stays(Opened { store, outbox, .. }: Opened) {
    let a = "https://a:443";
    dead(&*store, &*outbox, &[("t1", a, 100), ("t2", a, 200)]).await;
    outbox.replay(&DeadFilter::default(), false, at(500), 0, 10).await.unwrap();
    let replays = outbox.claim_replays(at(500), LEASE, 10).await.unwrap();
    let step = |place: usize, taken| ReplayStep {
        letter: replays[place].letter.id,
        epoch: replays[place].epoch,
        taken,
        at: at(600),
        http: Some(500),
        error: Some("again".into()),
        delivered: None,
    };
    let fenced = ReplayStep { epoch: replays[1].epoch - 1, ..step(1, true) };
    outbox.settle_replays(vec![step(0, true), fenced, step(1, false)]).await.unwrap();
    let left = outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters;
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].task.as_str(), left[0].replays, left[0].last_at, left[0].http), ("t2", 1, at(600), Some(500)));
    assert_eq!(left[0].error.as_deref(), Some("again"));
    assert!(outbox.claim_replays(at(9_999_999), LEASE, 10).await.unwrap().is_empty(), "one try for each time it is asked for");
}

async fn letters_of_a_webhook_that_is_gone_are_not_delivered_again(Opened { store, outbox, .. }: Opened) {
    let a = "https://a:443";
    dead(&*store, &*outbox, &[("t1", a, 100), ("t2", a, 200), ("t3", a, 300)]).await;
    outbox.unregister(&"t1".into(), "w").await.unwrap();
    store.append(pieces(&task("t3"), 2, 2)).await.unwrap();
    let lane = claim(&*outbox, at(2_000_000)).await.remove(0);
    outbox.settle_lanes(vec![step(&lane, LaneAction::Gone { to: lane.cursor.tail }, at(2_000_001))]).await.unwrap();
    let in_line = outbox.replay(&DeadFilter::default(), false, at(500), 0, 10).await.unwrap();
    assert_eq!(in_line.len(), 1);
    assert_eq!(found(&*outbox, &DeadFilter::default()).await.len(), 3, "the letters are still there to be looked at");
    outbox.unregister(&"t2".into(), "w").await.unwrap();
    assert!(outbox.claim_replays(at(500), LEASE, 10).await.unwrap().is_empty(), "not even if it was in line already");
}

async fn letters_are_purged_by_what_is_said_of_them(Opened { store, outbox, .. }: Opened) {
    let a = "https://a:443";
    dead(&*store, &*outbox, &[("t1", a, 100), ("t2", a, 200), ("t3", a, 300)]).await;
    let early = DeadFilter { until: Some(at(250)), ..DeadFilter::default() };
    assert_eq!(outbox.purge(&early, 1).await.unwrap(), 1);
    assert_eq!(found(&*outbox, &DeadFilter::default()).await, ["t2", "t3"]);
    assert_eq!(outbox.purge(&early, 10).await.unwrap(), 1);
    assert_eq!(outbox.purge(&early, 10).await.unwrap(), 0);
    assert_eq!(found(&*outbox, &DeadFilter::default()).await, ["t3"]);
}

async fn receipts_are_a_chain_for_each_lane(Opened { store, outbox, .. }: Opened) {
    told(&*store, "t1", "https://a:443").await;
    told(&*store, "t2", "https://a:443").await;
    let mut hash = 0;
    for _ in 0..2 {
        for mut lane in claim(&*outbox, at(2_000_000)).await {
            hash += 1;
            let seq = lane.cursor.head;
            let receipt = receipt(&lane, seq, hash, at(2_000_001));
            lane.receipt = Some(receipt.hash);
            let ack = LaneAction::Ack { span: Span::single(seq), keep: None };
            outbox.settle_lanes(vec![LaneStep { receipt: Some(receipt), ..step(&lane, ack, at(2_000_001)) }]).await.unwrap();
        }
        for id in ["t1", "t2"] {
            let task = task(id);
            let stored = store.find_any(id).await.unwrap().unwrap();
            store.append(pieces(&task, stored.progress.seq + 1, stored.progress.seq + 1)).await.unwrap();
        }
    }
    let all = outbox.receipts(None, 0, 10).await.unwrap();
    assert_eq!(all.len(), 4);
    let lanes = outbox.lanes(&LaneFilter::default(), 0, 10).await.unwrap().lanes;
    for lane in lanes {
        let chain = outbox.receipts(Some(lane.number()), 0, 10).await.unwrap();
        assert_eq!(chain.len(), 2);
        assert_eq!(chain[0].1.prev_hash, [0; 32]);
        assert_eq!(chain[1].1.prev_hash, chain[0].1.hash, "the claim said what to chain to");
        assert_eq!(lane.receipt, Some(chain[1].1.hash));
        let rest = outbox.receipts(Some(lane.number()), chain[0].0, 10).await.unwrap();
        assert_eq!(rest, chain[1..]);
        assert_eq!(chain[0].1.receiver_receipt.as_deref(), Some("theirs"));
    }
    assert_eq!(outbox.receipts(None, 0, 3).await.unwrap(), all[..3]);
}

async fn of_the_attempts_only_the_newest_are_kept(Opened { store, outbox, .. }: Opened) {
    told(&*store, "t1", "https://a:443").await;
    for (now, n) in (10_000..).zip(1..=40) {
        let lane = claim(&*outbox, at(now)).await.remove(0);
        let retry = LaneAction::Retry { span: Span::single(1), next_at: at(now + 1) };
        let noted = LaneStep { attempt: Some(attempt(&lane, n, at(now))), ..step(&lane, retry, at(now)) };
        outbox.settle_lanes(vec![noted]).await.unwrap();
    }
    let lane = outbox.lanes(&LaneFilter::default(), 0, 1).await.unwrap().lanes.remove(0);
    let kept = outbox.attempts(lane.number(), at(0), 100).await.unwrap();
    assert_eq!(kept.iter().map(|attempt| attempt.n).collect::<Vec<_>>(), (9..=40).rev().collect::<Vec<_>>());
    assert_eq!(kept[0], attempt(&lane, 40, at(10_039)));
    assert_eq!(outbox.attempts(lane.number(), at(10_038), 100).await.unwrap().len(), 2);
    assert_eq!(outbox.attempts(lane.number(), at(0), 3).await.unwrap().len(), 3);
    outbox.unregister(&"t1".into(), "w").await.unwrap();
    assert!(outbox.attempts(lane.number(), at(0), 100).await.unwrap().is_empty());
}

async fn nothing_is_kept_of_a_step_that_is_fenced(Opened { store, outbox, .. }: Opened) {
    told(&*store, "t1", "https://a:443").await;
    let zombie = claim(&*outbox, at(10_000)).await.remove(0);
    claim(&*outbox, at(10_000) + LEASE).await;
    let late = LaneStep {
        receipt: Some(receipt(&zombie, 1, 1, at(1))),
        attempt: Some(attempt(&zombie, 1, at(1))),
        ..reject(&zombie, at(10_001) + LEASE)
    };
    outbox.settle_lanes(vec![late]).await.unwrap();
    assert!(outbox.receipts(None, 0, 10).await.unwrap().is_empty());
    assert!(outbox.attempts(zombie.number(), at(0), 10).await.unwrap().is_empty());
    assert!(found(&*outbox, &DeadFilter::default()).await.is_empty());
}

async fn what_is_old_goes_a_part_at_a_time(Opened { store, outbox, .. }: Opened) {
    let a = "https://a:443";
    dead(&*store, &*outbox, &[("t1", a, 100), ("t2", a, 200), ("t3", a, 300)]).await;
    outbox.change_state(&LaneFilter::default(), StateChange::Pause, at(1), 0, 10).await.unwrap();
    let mut old = LaneSweep { drained_before: at(0), dead_before: at(250), receipts_before: at(250), at_most: 1 };
    assert_eq!(outbox.sweep_lanes(old).await.unwrap().dead, 1);
    assert_eq!(found(&*outbox, &DeadFilter::default()).await, ["t2", "t3"]);
    old.at_most = 10;
    assert_eq!(outbox.sweep_lanes(old).await.unwrap().dead, 1);
    assert_eq!(outbox.sweep_lanes(old).await.unwrap().dead, 0);
    assert_eq!(found(&*outbox, &DeadFilter::default()).await, ["t3"]);
}
