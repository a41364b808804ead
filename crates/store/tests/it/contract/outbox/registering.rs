//! Who is told of what.

use std::sync::Arc;

use chancery_core::push::{
    LaneFilter, NewRegistration, Registered, RegistrationLimits, Resealed, SealedSecret, Span, WebhookOrigin,
};
use chancery_core::{Append, Appended, Names};
use chancery_protocol::Timestamp;

use super::{LIMITS, ORIGIN, claim, new, registration, told_creation};
use crate::contract::sample::{Opened, ada, at, creation, creation_with_key, on_every_store, pieces, record, task};

on_every_store! {
    what_is_registered_comes_back_as_it_was,
    the_same_name_takes_the_lane_over_and_fences_its_holder,
    registrations_come_in_the_order_they_were_made_and_in_pages,
    secrets_are_sealed_anew_unless_they_changed_meanwhile,
    whoever_begins_with_a_snapshot_is_due_at_once_and_then_told_what_follows,
    one_that_is_deleted_is_gone_and_its_number_never_comes_back,
    there_are_only_so_many_of_a_task_and_of_a_tenant,
    a_task_that_may_not_have_its_webhook_is_not_made,
    a_task_that_is_made_twice_has_its_webhook_once,
    a_retry_of_a_creation_is_known_although_the_tenant_has_no_room_left,
    nothing_is_registered_for_a_task_that_is_not_there_or_with_an_append_to_one_that_is,
}

async fn what_is_registered_comes_back_as_it_was(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    let Registered::Kept { lane, replaced: false } = outbox.register(new(&task, "w", ORIGIN)).await.unwrap() else { panic!() };
    let mut expected = registration(&task, "w", ORIGIN);
    expected.lane = lane;
    assert_eq!(*outbox.registration(&task.id, "w").await.unwrap().unwrap(), expected);
    assert_eq!(outbox.registration(&task.id, "x").await.unwrap(), None);
    assert_eq!(outbox.registration(&"t2".into(), "w").await.unwrap(), None);

    let mut bare = new(&task, "bare", ORIGIN);
    (bare.registration.scheme, bare.registration.sealed) = (None, None);
    outbox.register(bare.clone()).await.unwrap();
    let found = outbox.registration(&task.id, "bare").await.unwrap().unwrap();
    assert_eq!((&found.scheme, &found.sealed), (&None, &None));
    assert_eq!(found.destination(), WebhookOrigin { tenant: "acme".into(), origin: ORIGIN.into() });
}

async fn the_same_name_takes_the_lane_over_and_fences_its_holder(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    let claimed = claim(&*outbox, at(10_000)).await.remove(0);
    let again = outbox.register(new(&task, "w", "https://other:443")).await.unwrap();
    assert_eq!(again, Registered::Kept { lane: claimed.number(), replaced: true });
    let late = outbox.settle_lanes(vec![super::ack(&claimed, 1, at(10_001))]).await.unwrap();
    assert_eq!(late, [chancery_core::push::LaneSettlement::Fenced]);
    // What the old one was not told, the new one is.
    let next = claim(&*outbox, at(10_002)).await.remove(0);
    assert_eq!(next.registration.url.as_ref(), "https://other:443/hook?x=1");
    assert_eq!((next.cursor.head, next.cursor.tail), (1, 1));
    assert_eq!(outbox.registrations(&task.id, 0, 10).await.unwrap().len(), 1);
    assert_eq!(outbox.outbox_load().await.unwrap().lanes, 1);
}

async fn whoever_begins_with_a_snapshot_is_due_at_once_and_then_told_what_follows(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    outbox.register(new(&task, "plain", ORIGIN)).await.unwrap();
    assert_eq!(outbox.next_due(&[]).await.unwrap(), None);
    outbox.register(NewRegistration { snapshot: true, ..new(&task, "w", ORIGIN) }).await.unwrap();
    assert!(outbox.next_due(&[]).await.unwrap().is_some());
    let claimed = claim(&*outbox, at(10_000)).await;
    assert_eq!(claimed.len(), 1);
    let cursor = claimed[0].cursor;
    assert_eq!((cursor.head, cursor.tail, cursor.span), (1, 1, Some(Span::snapshot(1))));
    assert_eq!(claimed[0].registration.id.as_str(), "w");
}

async fn secrets_are_sealed_anew_unless_they_changed_meanwhile(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    let (first, second) = (new(&task, "w", ORIGIN), new(&task, "x", ORIGIN));
    let before = first.registration.sealed.clone().unwrap();
    outbox.register(first).await.unwrap();
    outbox.register(second).await.unwrap();
    let sealed = |by: &str| SealedSecret { kek_id: by.into(), bytes: by.as_bytes().into() };
    let lane = outbox.registration(&task.id, "w").await.unwrap().unwrap().lane;
    let anew = |before: SealedSecret, lane| Resealed { lane, before, after: sealed("new key") };
    let asked = vec![anew(before, lane), anew(sealed("other"), lane + 1), anew(sealed("other"), lane + 9)];
    assert_eq!(outbox.reseal(asked.clone()).await.unwrap(), 1);
    let look = async |id| outbox.registration(&task.id, id).await.unwrap().unwrap().sealed.clone();
    assert_eq!(look("w").await, Some(sealed("new key")));
    assert_ne!(look("x").await, Some(sealed("new key")));
    assert_eq!(outbox.reseal(asked).await.unwrap(), 0, "it is somebody else's now");
}

async fn registrations_come_in_the_order_they_were_made_and_in_pages(Opened { store, outbox, .. }: Opened) {
    let (task, other) = (task("t1"), task("t2"));
    for task in [&task, &other] {
        store.append(creation(task)).await.unwrap();
        for id in ["c", "a", "b"] {
            outbox.register(new(task, id, ORIGIN)).await.unwrap();
        }
    }
    let first = outbox.registrations(&task.id, 0, 2).await.unwrap();
    let names = |found: &[Arc<chancery_core::push::Registration>]| found.iter().map(|one| one.id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&first), ["c", "a"]);
    assert_eq!(names(&outbox.registrations(&task.id, first[1].lane, 2).await.unwrap()), ["b"]);

    let page = outbox.lanes(&LaneFilter::default(), 0, 4).await.unwrap();
    assert_eq!(page.lanes.len(), 4);
    let rest = outbox.lanes(&LaneFilter::default(), page.next.unwrap(), 4).await.unwrap();
    assert_eq!((rest.lanes.len(), rest.next), (2, None));
    let of_task = LaneFilter { task: Some(other.id.clone()), registration: Some("a".into()), ..LaneFilter::default() };
    let found = outbox.lanes(&of_task, 0, 10).await.unwrap().lanes;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].registration.task, other.id);
    for (field, filter) in [
        ("tenant", LaneFilter { tenant: Some("nobody".into()), ..LaneFilter::default() }),
        ("origin", LaneFilter { origin: Some("https://x:443".into()), ..LaneFilter::default() }),
        ("state", LaneFilter { state: Some("paused".into()), ..LaneFilter::default() }),
        ("unknown state", LaneFilter { state: Some("odd".into()), ..LaneFilter::default() }),
        ("lane", LaneFilter { lane: Some(1 << 60), ..LaneFilter::default() }),
    ] {
        assert!(outbox.lanes(&filter, 0, 10).await.unwrap().lanes.is_empty(), "{field}");
    }
}

async fn one_that_is_deleted_is_gone_and_its_number_never_comes_back(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    let claimed = claim(&*outbox, at(10_000)).await.remove(0);
    assert_eq!(outbox.unregister(&task.id, "w").await.unwrap(), Some(claimed.number()));
    assert_eq!(outbox.unregister(&task.id, "w").await.unwrap(), None);
    assert_eq!(outbox.unregister(&"t2".into(), "w").await.unwrap(), None);
    let late = outbox.settle_lanes(vec![super::ack(&claimed, 1, at(10_001))]).await.unwrap();
    assert_eq!(late, [chancery_core::push::LaneSettlement::Fenced]);
    assert!(outbox.registrations(&task.id, 0, 10).await.unwrap().is_empty());
    assert_eq!(store.append(pieces(&task, 2, 2)).await.unwrap(), Appended::Recorded, "nobody is told any more");
    assert_eq!(outbox.next_due(&[]).await.unwrap(), None);
    let Registered::Kept { lane, .. } = outbox.register(new(&task, "w", ORIGIN)).await.unwrap() else { panic!() };
    assert!(lane > claimed.number());
}

async fn there_are_only_so_many_of_a_task_and_of_a_tenant(Opened { store, outbox, .. }: Opened) {
    let limits = RegistrationLimits { per_task: 2, per_tenant: 3 };
    let limited = |task, id| NewRegistration { limits, ..new(task, id, ORIGIN) };
    let (first, second) = (task("t1"), task("t2"));
    let stranger = Arc::new(record("t3", chancery_protocol::Caller::new("other", "ada")));
    for task in [&first, &second, &stranger] {
        store.append(creation(task)).await.unwrap();
    }
    let register = async |task, id| outbox.register(limited(task, id)).await.unwrap();
    assert!(matches!(register(&first, "a").await, Registered::Kept { .. }));
    assert!(matches!(register(&first, "b").await, Registered::Kept { .. }));
    assert_eq!(register(&first, "c").await, Registered::TooManyOfTask);
    assert!(matches!(register(&first, "b").await, Registered::Kept { replaced: true, .. }), "a replacement needs no room");
    assert!(matches!(register(&second, "a").await, Registered::Kept { .. }));
    assert_eq!(register(&second, "b").await, Registered::TooManyOfTenant);
    assert!(matches!(register(&stranger, "a").await, Registered::Kept { .. }), "another tenant has its own count");
    outbox.unregister(&first.id, "a").await.unwrap();
    assert!(matches!(register(&second, "b").await, Registered::Kept { .. }));
}

async fn a_task_that_may_not_have_its_webhook_is_not_made(Opened { store, outbox, .. }: Opened) {
    let (first, second) = (task("t1"), task("t2"));
    let mut told = told_creation(&first, false);
    told.register.as_mut().unwrap().limits = RegistrationLimits { per_task: 0, per_tenant: 1 };
    assert_eq!(store.append(told).await.unwrap(), Appended::TooManyRegistrations { of_tenant: false });
    assert_eq!(store.find(&ada(), "t1", Names::Server).await.unwrap(), None);

    let one = |task| {
        let mut told = told_creation(task, false);
        told.register.as_mut().unwrap().limits = RegistrationLimits { per_task: 1, per_tenant: 1 };
        told
    };
    assert_eq!(store.append(one(&first)).await.unwrap(), Appended::RecordedToTell);
    assert_eq!(store.append(one(&second)).await.unwrap(), Appended::TooManyRegistrations { of_tenant: true });
    assert_eq!(store.find(&ada(), "t2", Names::Server).await.unwrap(), None);
    assert_eq!(outbox.outbox_load().await.unwrap().lanes, 1);
}

async fn a_task_that_is_made_twice_has_its_webhook_once(Opened { store, outbox, .. }: Opened) {
    let (first, second) = (task("t1"), task("t2"));
    store.append(told_creation(&first, false)).await.unwrap();
    store.append(told_creation(&first, false)).await.unwrap_err();
    assert_eq!(outbox.outbox_load().await.unwrap().lanes, 1);
    let mut told = told_creation(&second, false);
    told.register.as_mut().unwrap().limits = RegistrationLimits { per_task: 1, per_tenant: 2 };
    assert_eq!(store.append(told).await.unwrap(), Appended::RecordedBehind, "there was room for one more");
}

async fn a_retry_of_a_creation_is_known_although_the_tenant_has_no_room_left(Opened { store, .. }: Opened) {
    let later = Timestamp::from_micros(i64::MAX);
    let keyed = |id: &str| {
        let task = task(id);
        let limits = RegistrationLimits { per_task: 1, per_tenant: 1 };
        let register = NewRegistration { limits, ..new(&task, "w", ORIGIN) };
        Append { register: Some(Box::new(register)), ..creation_with_key(&task, "k", 1, later) }
    };
    assert_eq!(store.append(keyed("t1")).await.unwrap(), Appended::RecordedToTell);
    assert_eq!(store.append(keyed("t2")).await.unwrap(), Appended::KeyKnown { task: "t1".into(), fingerprint: [1; 32] });
}

async fn nothing_is_registered_for_a_task_that_is_not_there_or_with_an_append_to_one_that_is(
    Opened { store, outbox, .. }: Opened,
) {
    let task = task("t1");
    assert_eq!(outbox.register(new(&task, "w", ORIGIN)).await.unwrap(), Registered::NoTask);
    store.append(creation(&task)).await.unwrap();
    let late = Append { register: Some(Box::new(new(&task, "w", ORIGIN))), ..pieces(&task, 2, 2) };
    assert!(store.append(late).await.is_err());
    assert!(outbox.registrations(&task.id, 0, 10).await.unwrap().is_empty());
    assert_eq!(LIMITS.per_task, 10);
}
