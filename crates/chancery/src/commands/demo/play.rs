//! Plays one scene: the root calls, and the records are watched until it is over.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use chancery::protocol::Error;
use chancery_core::MicroUsd;
use chancery_core::spawn_watched;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::agents::{Order, ROLES};
use super::audience::DemoOutput;
use super::judge::Judge;
use super::line::{DemoCall, fresh_trace};
use super::records::RecordsView;
use super::stage::DemoStage;
use crate::commands::Failure;

/// How often the records are looked at.
const GLANCE: Duration = Duration::from_millis(40);
/// How long the last records may take once the root has its answer.
const SETTLING: Duration = Duration::from_secs(3);

pub(super) struct Scene {
    pub(super) number: usize,
    pub(super) title: &'static str,
    pub(super) order: Order,
}

/// What came of a scene.
pub(super) struct Played {
    pub(super) scene: Scene,
    pub(super) picture: RecordsView,
    /// The most that was spent and set aside at once.
    pub(super) peak: MicroUsd,
    pub(super) faults: Vec<String>,
}

pub(super) async fn play(stage: &DemoStage, scene: Scene, until: Instant, audience: &mut DemoOutput) -> Result<Played, Failure> {
    audience.announce(&scene);
    let plane = stage.plane();
    let before = RecordsView::decisions_so_far(plane).await.map_err(unreadable)?;
    let trace = fresh_trace();
    let ask = DemoCall { trace, ..DemoCall::of_nobody(scene.order.clone()) };
    let you = Arc::clone(&stage.you);
    let mut answer = spawn_watched("demo call", async move { you.ask(ROLES[0].name, ask).await });
    let mut judge = Judge::default();
    let mut glance = interval(GLANCE);
    glance.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut picture;
    let answered = loop {
        let answered = tokio::select! {
            answered = &mut answer => Some(Some(answered)),
            () = sleep_until(until) => Some(None),
            _ = glance.tick() => None,
        };
        picture = RecordsView::take(plane, trace, &before).await.map_err(unreadable)?;
        judge.look(&picture, &stage.config);
        audience.see(&scene, &picture);
        if let Some(answered) = answered {
            break answered;
        }
    };
    match answered {
        Some(Ok(Err(error))) if picture.refused.is_empty() => judge.fault(format!("the first call failed: {error}")),
        Some(Err(error)) => judge.fault(format!("the first call broke off: {error}")),
        Some(_) => {}
        None => {
            answer.abort();
            judge.fault("it did not end by itself in time".to_owned());
            if let Some(root) = picture.root() {
                // Whatever does not even stop when it is told to is left to the end of the process.
                let _ = timeout(SETTLING, plane.cancel_tree(&root.task)).await;
            }
        }
    }
    let settling = async {
        while !picture.is_over() {
            glance.tick().await;
            picture = RecordsView::take(plane, trace, &before).await?;
            judge.look(&picture, &stage.config);
            audience.see(&scene, &picture);
        }
        Ok::<_, Error>(())
    };
    match timeout(SETTLING, settling).await {
        Ok(read) => read.map_err(unreadable)?,
        Err(_) => judge.fault("the root has its answer, but something goes on".to_owned()),
    }
    judge.conclude(&picture, &scene.order, &stage.config);
    let peak = judge.peak;
    let played = Played { scene, picture, peak, faults: judge.into_faults() };
    audience.conclude(&played);
    Ok(played)
}

fn unreadable(error: Error) -> Failure {
    anyhow!("the records cannot be read: {}", error.message).into()
}
