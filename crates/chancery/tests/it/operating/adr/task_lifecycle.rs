//! A task from submitted over working to completed, as `tasks/get` shows it at each step.

use super::directed::{Cue, Stage};
use super::{Caller, line};
use crate::tasks::scenarios::lines;

/// State, history and artifacts as `tasks/get` tells them now.
async fn look(caller: &Caller) -> (String, Vec<String>, Vec<String>) {
    let task = caller.get("job-1").await;
    (lines::state(task.status.state), lines::history(&task), lines::artifacts(&task))
}

#[tokio::test]
async fn tasks_get_tells_state_and_history_at_every_step() {
    let stage = Stage::open().await;
    let caller = Caller::new(&stage.url);
    let mut stream = caller.send_subscribe("job-1", "write a poem").await;
    let history = |more: &[&str]| {
        let all = ["user: write a poem"].into_iter().chain(more.iter().copied());
        all.map(str::to_owned).collect::<Vec<_>>()
    };

    assert_eq!(line(&mut stream).await.unwrap(), "status submitted");
    assert_eq!(look(&caller).await, ("submitted".into(), history(&[]), vec![]));

    stage.cue(Cue::Work("thinking"));
    assert_eq!(line(&mut stream).await.unwrap(), "status working: thinking");
    assert_eq!(look(&caller).await, ("working".into(), history(&[]), vec![]));
    assert_eq!(caller.get("job-1").await.status.message.as_ref().unwrap().first_text(), Some("thinking"));

    stage.cue(Cue::Work("writing"));
    assert_eq!(line(&mut stream).await.unwrap(), "status working: writing");
    assert_eq!(look(&caller).await, ("working".into(), history(&["agent: thinking"]), vec![]));

    stage.cue(Cue::Complete("roses are red"));
    assert_eq!(line(&mut stream).await.unwrap(), "artifact roses are red (last)");
    assert_eq!(line(&mut stream).await.unwrap(), "status completed");
    assert_eq!(line(&mut stream).await, None);
    let all = history(&["agent: thinking", "agent: writing"]);
    assert_eq!(look(&caller).await, ("completed".into(), all, vec!["roses are red".into()]));
}

#[tokio::test]
async fn tasks_send_waits_for_the_end() {
    let stage = Stage::open().await;
    let caller = Caller::new(&stage.url);
    stage.cue(Cue::Work("at it"));
    stage.cue(Cue::Complete("done"));
    let task = caller.send("job-1", "do it").await;
    assert_eq!(look(&caller).await, ("completed".into(), lines::history(&task), lines::artifacts(&task)));
    assert_eq!(lines::history(&task), ["user: do it", "agent: at it"]);
    assert_eq!((task.id.as_str(), lines::artifacts(&task)), ("job-1", vec!["done".to_owned()]));
}
