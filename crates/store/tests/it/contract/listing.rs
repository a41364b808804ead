//! Lists: order, filters, pages and totals.

use std::sync::Arc;

use chancery_core::{Append, ListCursor, ListFilter, Store, Stored, TaskRecord};
use chancery_protocol::{Caller, TaskState};

use crate::contract::sample::{Opened, ada, at, bob, creation, listed_ids, on_every_store, put, record, task};

on_every_store! {
    the_newest_status_comes_first_and_ties_go_by_id,
    pages_follow_one_another_without_gap_or_overlap,
    each_filter_narrows_and_all_of_them_combine,
    a_cursor_need_not_name_a_task_that_is_there,
    logs_that_hold_only_a_message_are_not_listed,
    an_empty_store_lists_nothing,
    owners_of_a_name_are_found_in_every_tenant_however_old_their_tasks_are,
}

async fn the_newest_status_comes_first_and_ties_go_by_id(Opened { store, .. }: Opened) {
    for (id, time) in [("b", 5), ("a", 5), ("c", 4), ("d", 6), ("e", -1)] {
        put(&*store, record(id, ada()), TaskState::Working, at(time)).await;
    }
    assert_eq!(listed_ids(&*store).await, ["d", "b", "a", "c", "e"]);
    // A change moves a task to the front.
    store.append(crate::contract::sample::change(&task("c"), 3, TaskState::Completed, at(7))).await.unwrap();
    assert_eq!(listed_ids(&*store).await, ["c", "d", "b", "a", "e"]);
}

async fn pages(store: &dyn Store, filter: &ListFilter, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.list(filter, cursor.as_ref(), limit).await.unwrap();
        assert!(page.tasks.len() <= limit);
        let Some(last) = page.tasks.last() else { return found };
        cursor = Some(ListCursor { status_at: last.progress.status_at, id: last.task.id.clone() });
        found.extend(page.tasks.iter().map(|stored| stored.task.id.to_string()));
        assert!(page.total >= found.len() as u64);
    }
}

async fn pages_follow_one_another_without_gap_or_overlap(Opened { store, .. }: Opened) {
    for number in 0..40 {
        // Four statuses share each moment.
        put(&*store, record(&format!("t{number:02}"), ada()), TaskState::Working, at(number / 4)).await;
    }
    put(&*store, record("someone else's", bob()), TaskState::Working, at(5)).await;
    let mine = ListFilter { owner: Some(ada()), ..ListFilter::default() };
    let all = store.list(&mine, None, 1000).await.unwrap();
    assert_eq!(all.total, 40);
    let all: Vec<_> = all.tasks.iter().map(|stored| stored.task.id.to_string()).collect();
    assert_eq!(all.len(), 40);
    for limit in [1, 2, 3, 4, 5, 39, 40, 41] {
        assert_eq!(pages(&*store, &mine, limit).await, all, "limit {limit}");
    }
    assert_eq!(pages(&*store, &ListFilter::default(), 7).await.len(), 41);
}

async fn each_filter_narrows_and_all_of_them_combine(Opened { store, .. }: Opened) {
    let mut number = 0;
    for owner in [ada(), bob()] {
        for agent in ["echo", "other"] {
            for context in ["c1", "c2"] {
                for (state, time) in [(TaskState::Working, 10), (TaskState::Completed, 20)] {
                    number += 1;
                    let kept = TaskRecord {
                        agent: agent.into(),
                        context_id: context.into(),
                        ..record(&format!("t{number:02}"), owner.clone())
                    };
                    put(&*store, kept, state, at(time)).await;
                }
            }
        }
    }
    let count = async |filter: ListFilter| {
        let listed = store.list(&filter, None, 100).await.unwrap();
        assert_eq!(listed.total, listed.tasks.len() as u64);
        let ids = |tasks: Vec<Stored>| tasks.iter().map(|stored| stored.task.id.to_string()).collect::<Vec<_>>();
        let uncounted = store.list_page(&filter, None, 100).await.unwrap();
        assert_eq!(ids(uncounted), ids(listed.tasks), "the same page, without a total");
        listed.total
    };
    let all = ListFilter::default();
    assert_eq!(count(all.clone()).await, 16);
    assert_eq!(count(ListFilter { owner: Some(ada()), ..all.clone() }).await, 8);
    assert_eq!(count(ListFilter { tenant: Some(ada().tenant), caller: Some(ada().name), ..all.clone() }).await, 8);
    assert_eq!(count(ListFilter { caller: Some(bob().name), ..all.clone() }).await, 8);
    assert_eq!(count(ListFilter { tenant: Some("nobody's".into()), ..all.clone() }).await, 0);
    assert_eq!(count(ListFilter { caller: Some("nobody".into()), ..all.clone() }).await, 0);
    assert_eq!(count(ListFilter { agents: Some(vec!["other".into()]), ..all.clone() }).await, 8);
    assert_eq!(count(ListFilter { agents: Some(vec!["unknown".into()]), ..all.clone() }).await, 0);
    assert_eq!(count(ListFilter { agents: Some(Vec::new()), ..all.clone() }).await, 0);
    let both = ListFilter { agents: Some(vec!["other".into(), "echo".into(), "unknown".into()]), ..all.clone() };
    assert_eq!(count(both).await, count(all.clone()).await);
    assert_eq!(count(ListFilter { context_id: Some("c1".into()), ..all.clone() }).await, 8);
    assert_eq!(count(ListFilter { state: Some(TaskState::Completed), ..all.clone() }).await, 8);
    assert_eq!(count(ListFilter { status_at_or_after: Some(at(20)), ..all.clone() }).await, 8);
    assert_eq!(count(ListFilter { status_at_or_after: Some(at(10)), ..all.clone() }).await, 16);
    assert_eq!(count(ListFilter { status_at_or_after: Some(at(21)), ..all }).await, 0);
    let one = ListFilter {
        owner: Some(bob()),
        tenant: None,
        caller: None,
        agents: Some(vec!["echo".into()]),
        context_id: Some("c2".into()),
        state: Some(TaskState::Working),
        status_at_or_after: Some(at(10)),
    };
    assert_eq!(count(one).await, 1);
}

async fn a_cursor_need_not_name_a_task_that_is_there(Opened { store, .. }: Opened) {
    for (id, time) in [("b", 5), ("d", 5), ("e", 4)] {
        put(&*store, record(id, ada()), TaskState::Working, at(time)).await;
    }
    let after = async |time, id: &str| {
        let cursor = ListCursor { status_at: at(time), id: id.into() };
        let page = store.list(&ListFilter::default(), Some(&cursor), 10).await.unwrap();
        assert_eq!(page.total, 3);
        assert_eq!(store.list_page(&ListFilter::default(), Some(&cursor), 10).await.unwrap().len(), page.tasks.len());
        page.tasks.iter().map(|stored| stored.task.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(after(5, "c").await, ["b", "e"]);
    assert_eq!(after(9, "").await, ["d", "b", "e"]);
    assert_eq!(after(4, "e").await, Vec::<String>::new());
}

async fn logs_that_hold_only_a_message_are_not_listed(Opened { store, .. }: Opened) {
    let made = creation(&task("t1"));
    let mut progress = made.progress;
    progress.message_only = true;
    store.append(Append { progress, ..made }).await.unwrap();
    store.append(creation(&Arc::new(record("t2", ada())))).await.unwrap();
    assert_eq!(listed_ids(&*store).await, ["t2"]);
}

async fn an_empty_store_lists_nothing(Opened { store, .. }: Opened) {
    assert_eq!(listed_ids(&*store).await, Vec::<String>::new());
    assert!(store.unfinished().await.unwrap().is_empty());
}

async fn owners_of_a_name_are_found_in_every_tenant_however_old_their_tasks_are(Opened { store, .. }: Opened) {
    let of = |tenant: &str, name: &str| Caller::new(tenant, name);
    put(&*store, record("t1", of("acme", "planner")), TaskState::Completed, at(1)).await;
    put(&*store, record("t2", of("globex", "planner")), TaskState::Working, at(2)).await;
    for number in 0..50 {
        put(&*store, record(&format!("o{number}"), of("acme", "other")), TaskState::Completed, at(100 + number)).await;
    }
    let mut owners = store.owners_named("planner").await.unwrap();
    owners.sort_by_key(|owner| owner.tenant.clone());
    assert_eq!(owners, [of("acme", "planner"), of("globex", "planner")]);
    assert_eq!(store.owners_named("other").await.unwrap(), [of("acme", "other")]);
    assert_eq!(store.owners_named("acme").await.unwrap(), []);
}
