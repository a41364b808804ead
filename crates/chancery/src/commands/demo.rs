//! `chancery demo`: agents that call each other in circles, and a control plane that stops them and keeps them to their budget.

mod agents;
mod audience;
mod drawing;
mod events;
mod judge;
mod line;
mod paint;
mod play;
mod records;
mod settings;
mod stage;

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;

use self::agents::Order;
use self::audience::DemoOutput;
use self::play::{Played, Scene};
use self::stage::DemoStage;
use super::{Failure, Shared};

/// A scene that has not ended by then does not end by itself.
const LONGEST: Duration = Duration::from_secs(22);
/// So many calls at once, of which each costs so much that they cannot all be paid for.
const FAN_OUT: usize = 8;

const EXAMPLES: &str = "\
Examples:
  chancery demo                                       all scenes, in a few seconds
  chancery demo --set recursion.deny_revisit=false    the loop runs until it is too deep instead
  chancery demo --set budget.tree.max_usd=0.02        the loop runs out of money instead
  chancery demo --set lineage.unattributed='\"deny\"'   calls without a token are rejected
  chancery demo --open                                no callers: the node identifies each agent by the address it calls
  chancery demo --json                                the events as JSON, one object per line

The command starts three agents and a node in this process, on free ports of the loopback, with temporary keys. It stores nothing and
calls no other address. It prints what the node has recorded, and exits with 1 if the record contradicts the settings.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {
    /// A setting of the control plane, as its config file would have it; can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Play the same scenes on a node without callers, whose agents call at addresses of their own (`chancery agents url NAME`)
    #[arg(long)]
    open: bool,
}

impl Demo {
    pub(super) fn run(self, shared: &Shared) -> Result<(), Failure> {
        if std::env::var_os("RUST_LOG").is_some() {
            super::log::start();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
        let shown = runtime.block_on(self.show(shared.json));
        runtime.shutdown_background();
        shown
    }

    async fn show(self, json: bool) -> Result<(), Failure> {
        let until = Instant::now() + LONGEST;
        let stage = DemoStage::set_up(&self.set, self.open).await?;
        let mut audience = DemoOutput::of(json, &stage);
        let mut played = Vec::new();
        for scene in scenes() {
            played.push(play::play(&stage, scene, until, &mut audience).await?);
            if Instant::now() >= until {
                break;
            }
        }
        stage.clear().await;
        audience.leave(&played);
        match faults(&played) {
            faults if faults.is_empty() => Ok(()),
            faults => Err(Failure::Refused(format!("not what the settings promise:\n  {}", faults.join("\n  ")))),
        }
    }
}

fn scenes() -> [Scene; 3] {
    [
        Scene {
            number: 1,
            title: "A loop: a asks b, b asks c, c asks a. Each echoes its hop token.",
            order: Order::HandOn { forgetful: Vec::new() },
        },
        Scene {
            number: 2,
            title: "The same loop, but b and c drop their hop token.",
            order: Order::HandOn { forgetful: vec!["b".to_owned(), "c".to_owned()] },
        },
        Scene {
            number: 3,
            title: "A fan-out: a asks b and c for eight jobs of $0.02 each, all at once.",
            order: Order::FanOut { calls: FAN_OUT },
        },
    ]
}

fn faults(played: &[Played]) -> Vec<String> {
    let of = |played: &Played| played.faults.iter().map(|fault| format!("{}: {fault}", played.scene.number)).collect::<Vec<_>>();
    played.iter().flat_map(of).collect()
}
