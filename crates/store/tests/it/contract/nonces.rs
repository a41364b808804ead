//! Nonces of signed requests: each is taken once while its signature holds, and none is forgotten before.

use chancery_core::{ExpiryPlan, NonceVerdict, SpentNonce, Store};
use chancery_store::{SqliteOptions, SqliteStore};

use crate::contract::sample::{Opened, at, on_every_store};

on_every_store! {
    a_nonce_is_taken_once_while_its_signature_holds,
    of_many_calls_with_one_nonce_exactly_one_is_let_through,
    as_many_nonces_are_kept_as_may_be_and_none_that_counts_is_forgotten_for_a_new_one,
    nonces_that_count_no_more_are_swept_a_few_at_a_time,
    one_key_that_signs_without_end_leaves_room_for_the_others,
    after_a_clock_that_jumped_no_signature_that_was_used_holds_again,
}

async fn spend(store: &dyn Store, nonce: u8, until: i64, now: i64, most: u64) -> NonceVerdict {
    store.spend_nonce(SpentNonce { nonce: [nonce; 32], until: at(until), now: at(now), most }).await.unwrap()
}

async fn a_nonce_is_taken_once_while_its_signature_holds(Opened { store, .. }: Opened) {
    assert_eq!(spend(&*store, 1, 300, 0, 9).await, NonceVerdict::Fresh);
    assert_eq!(spend(&*store, 1, 300, 0, 9).await, NonceVerdict::Replayed);
    assert_eq!(spend(&*store, 2, 300, 0, 9).await, NonceVerdict::Fresh);
    assert_eq!(spend(&*store, 1, 300, 300, 9).await, NonceVerdict::Replayed, "its last moment");
    assert_eq!(spend(&*store, 1, 601, 301, 9).await, NonceVerdict::Fresh, "another signature");
    assert_eq!(spend(&*store, 1, 601, 302, 9).await, NonceVerdict::Replayed);
}

async fn of_many_calls_with_one_nonce_exactly_one_is_let_through(Opened { store, .. }: Opened) {
    let calls = (0..100).map(|_| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move { spend(&*store, 7, 300, 0, 9).await })
    });
    let verdicts = futures::future::try_join_all(calls).await.unwrap();
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == NonceVerdict::Fresh).count(), 1);
    assert!(verdicts.iter().all(|verdict| *verdict != NonceVerdict::Full));
}

async fn as_many_nonces_are_kept_as_may_be_and_none_that_counts_is_forgotten_for_a_new_one(Opened { store, .. }: Opened) {
    assert_eq!(spend(&*store, 1, 10, 0, 2).await, NonceVerdict::Fresh);
    assert_eq!(spend(&*store, 2, 20, 0, 2).await, NonceVerdict::Fresh);
    assert_eq!(spend(&*store, 3, 30, 10, 2).await, NonceVerdict::Full);
    assert_eq!(spend(&*store, 1, 30, 10, 2).await, NonceVerdict::Replayed);
    assert_eq!(spend(&*store, 3, 30, 11, 2).await, NonceVerdict::Fresh, "the first counts no more");
    assert_eq!(spend(&*store, 4, 30, 11, 2).await, NonceVerdict::Full);
}

async fn nonces_that_count_no_more_are_swept_a_few_at_a_time(Opened { store, .. }: Opened) {
    for nonce in 1..=5 {
        assert_eq!(spend(&*store, nonce, 10, 0, 9).await, NonceVerdict::Fresh);
    }
    let expiry = |now, at_most| ExpiryPlan { now: at(now), at_most };
    assert!(!store.expire(expiry(10, 2)).await.unwrap(), "all still count");
    assert_eq!(spend(&*store, 1, 10, 0, 9).await, NonceVerdict::Replayed);
    let mut steps = 0;
    while store.expire(expiry(11, 2)).await.unwrap() {
        steps += 1;
    }
    assert_eq!(steps, 2, "two, two and one");
    assert_eq!(spend(&*store, 6, 20, 11, 1).await, NonceVerdict::Fresh, "there is room for others");
}

async fn after_a_clock_that_jumped_no_signature_that_was_used_holds_again(Opened { store, .. }: Opened) {
    assert_eq!(spend(&*store, 1, 300, 0, 9).await, NonceVerdict::Fresh);
    let expiry = ExpiryPlan { now: at(7200), at_most: 9 };
    store.expire(expiry).await.unwrap();
    assert_eq!(spend(&*store, 1, 300, 10, 9).await, NonceVerdict::Replayed, "the clock was stepped back");
    assert_eq!(spend(&*store, 2, 310, 10, 9).await, NonceVerdict::Fresh, "others are not locked out");
}

async fn one_key_that_signs_without_end_leaves_room_for_the_others(Opened { store, .. }: Opened) {
    let of_key = async |key: u8, number: u8| {
        let mut nonce = [number; 32];
        nonce[..8].fill(key);
        store.spend_nonce(SpentNonce { nonce, until: at(300), now: at(0), most: 80 }).await.unwrap()
    };
    let mut taken = 0;
    while of_key(7, taken).await == NonceVerdict::Fresh {
        taken += 1;
    }
    assert_eq!(taken, 60, "three quarters");
    for number in 0..10 {
        assert_eq!(of_key(8, number).await, NonceVerdict::Fresh, "{number}");
    }
    assert_eq!(of_key(8, 10).await, NonceVerdict::Full, "an eighth");
    assert_eq!(of_key(9, 0).await, NonceVerdict::Fresh);
}

#[tokio::test]
async fn the_next_process_knows_what_the_last_has_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open(folder.path().join("chancery.db"), SqliteOptions::default()).unwrap();
    let store = open();
    assert_eq!(spend(&store, 1, 300, 0, 2).await, NonceVerdict::Fresh);
    store.expire(ExpiryPlan { now: at(7200), at_most: 9 }).await.unwrap();
    drop(store);
    let store = open();
    assert_eq!(spend(&store, 1, 300, 10, 2).await, NonceVerdict::Replayed);
    assert_eq!(spend(&store, 2, 310, 10, 1).await, NonceVerdict::Fresh, "what was forgotten takes no room");
}

#[tokio::test]
async fn the_next_process_knows_the_nonces_of_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open(folder.path().join("chancery.db"), SqliteOptions::default()).unwrap();
    let store = open();
    assert_eq!(spend(&store, 1, 300, 0, 2).await, NonceVerdict::Fresh);
    drop(store);
    let store = open();
    assert_eq!(spend(&store, 1, 300, 1, 2).await, NonceVerdict::Replayed);
    assert_eq!(spend(&store, 2, 300, 1, 2).await, NonceVerdict::Fresh);
    assert_eq!(spend(&store, 3, 300, 1, 2).await, NonceVerdict::Full, "those of the last process are counted");
}
