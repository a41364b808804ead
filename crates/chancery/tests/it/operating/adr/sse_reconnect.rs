//! A reader is cut off in the middle of a stream and goes on with `tasks/resubscribe`: no event twice, none missing.

use super::directed::{Cue, Stage};
use super::{Caller, line};
use crate::tasks::scenarios::lines;

const WORDS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// The whole stream as an uninterrupted reader sees it.
fn whole() -> Vec<String> {
    let working = WORDS.iter().map(|words| format!("status working: {words}"));
    let end = ["artifact counted (last)".to_owned(), "status completed".to_owned()];
    ["status submitted".to_owned()].into_iter().chain(working).chain(end).collect()
}

/// Reads `seen` events, is cut off while the runner goes on to `done` more, and resumes.
async fn cut_after(seen: usize, done: usize) -> Vec<String> {
    let stage = Stage::open().await;
    let caller = Caller::new(&stage.url);
    let mut stream = caller.send_subscribe("job-1", "count").await;
    let mut cues = WORDS.map(Cue::Work).into_iter().chain([Cue::Complete("counted")]);
    let (mut read, mut last) = (Vec::new(), 0);
    for number in 0..seen {
        if number > 0
            && let Some(cue) = cues.next()
        {
            stage.cue(cue);
        }
        let event = stream.next().await.unwrap().expect("an event");
        last = event.id.expect("an id");
        read.push(lines::event(&event.event));
    }
    drop(stream);
    cues.by_ref().take(done).for_each(|cue| stage.cue(cue));

    let mut resumed = caller.resubscribe("job-1", Some(last)).await;
    cues.for_each(|cue| stage.cue(cue));
    while let Some(event) = line(&mut resumed).await {
        read.push(event);
    }
    read
}

#[tokio::test]
async fn wherever_a_stream_is_cut_the_rest_follows_without_gap_or_repetition() {
    for seen in 1..=6 {
        for done in [0, 1, 6] {
            assert_eq!(cut_after(seen, done).await, whole(), "cut after {seen} events, {done} cues later");
        }
    }
}

#[tokio::test]
async fn without_the_id_the_stream_opens_with_the_task_as_it_is_and_goes_on() {
    let stage = Stage::open().await;
    let caller = Caller::new(&stage.url);
    let mut stream = caller.send_subscribe("job-1", "count").await;
    stage.cue(Cue::Work("one"));
    assert_eq!(line(&mut stream).await.unwrap(), "status submitted");
    assert_eq!(line(&mut stream).await.unwrap(), "status working: one");
    drop(stream);

    let mut resumed = caller.resubscribe("job-1", None).await;
    assert_eq!(line(&mut resumed).await.unwrap(), "status working: one");
    stage.cue(Cue::Complete("counted"));
    assert_eq!(line(&mut resumed).await.unwrap(), "artifact counted (last)");
    assert_eq!(line(&mut resumed).await.unwrap(), "status completed");
    assert_eq!(line(&mut resumed).await, None);
}
