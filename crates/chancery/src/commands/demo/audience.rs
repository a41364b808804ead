//! The output of the demo: JSON for a program, redrawn lines for a terminal, plain lines for everything else.

use chancery_core::MicroUsd;

use super::drawing::Drawing;
use super::events::{self, ShownEvents};
use super::paint::{Paint, Tone, is_live};
use super::play::{Played, Scene};
use super::records::RecordsView;
use super::stage::DemoStage;
use crate::commands::show;

const NEXT: &str = "\
Try next:
  chancery demo --set recursion.deny_revisit=false  its depth ends the loop
  chancery demo --set budget.tree.max_usd=0.02      its budget ends the loop
  chancery serve                                    a node, with an echo agent
  chancery serve --agent URL                        the same for your agent
  chancery init                                     a config with every setting
docs/configuration.md explains the settings.
";

/// Lines that are drawn over on a terminal, which has 24 at least.
const DRAWN_OVER: usize = 20;

pub(super) struct DemoOutput {
    kind: Kind,
    paint: Paint,
    cap: Option<MicroUsd>,
    told: ShownEvents,
}

enum Kind {
    Json,
    Lines,
    /// With what is drawn now.
    Terminal(Vec<String>),
}

impl DemoOutput {
    pub(super) fn of(json: bool, stage: &DemoStage) -> Self {
        let kind = match (json, is_live()) {
            (true, _) => Kind::Json,
            (false, false) => Kind::Lines,
            (false, true) => Kind::Terminal(Vec::new()),
        };
        let cap = stage.config.governance.budget.tree.max_usd;
        let audience = Self { kind, paint: Paint::for_stdout(), cap, told: ShownEvents::default() };
        if !matches!(audience.kind, Kind::Json) {
            let may = cap.map_or_else(|| "has no cap".to_owned(), |cap| format!("may spend ${cap}"));
            show::print(&format!(
                "The control plane is at {}, with three agents behind it.\nA tree of calls {may}.\n\
                 Everything runs on the loopback, and nothing is stored.\n",
                stage.url
            ));
        }
        audience
    }

    pub(super) fn announce(&mut self, scene: &Scene) {
        match &mut self.kind {
            Kind::Json => show::print_json(&events::scene(scene).to_string()),
            kind => {
                if let Kind::Terminal(drawn) = kind {
                    drawn.clear();
                }
                let title = self.paint.tone(Tone::Loud, format!("{}  {}", scene.number, scene.title));
                show::print(&format!("\n{title}\n\n"));
            }
        }
    }

    /// The records as they are now.
    pub(super) fn see(&mut self, scene: &Scene, picture: &RecordsView) {
        match &mut self.kind {
            Kind::Json => {
                for event in self.told.news(picture) {
                    show::print_json(&event.json(scene).to_string());
                }
            }
            Kind::Lines => {
                for line in self.told.news(picture).iter().flat_map(events::DemoEvent::lines) {
                    show::print_line(&line);
                }
            }
            Kind::Terminal(drawn) => {
                let mut lines = Drawing { picture, paint: self.paint, cap: self.cap }.lines();
                // What has left the screen cannot be drawn over.
                lines.drain(..lines.len().saturating_sub(DRAWN_OVER));
                redraw(drawn, lines);
            }
        }
    }

    pub(super) fn conclude(&mut self, played: &Played) {
        self.see(&played.scene, &played.picture);
        let lines = Drawing { picture: &played.picture, paint: self.paint, cap: self.cap }.lines();
        match &mut self.kind {
            Kind::Json => {}
            Kind::Lines => show::print(&format!("\n{}\n", lines.join("\n"))),
            Kind::Terminal(drawn) => redraw(drawn, lines),
        }
    }

    pub(super) fn leave(&self, played: &[Played]) {
        if matches!(self.kind, Kind::Json) {
            return show::print_json(&events::summary(played).to_string());
        }
        let tasks: usize = played.iter().map(|played| played.picture.tasks.len()).sum();
        let refused: usize = played.iter().map(|played| played.picture.refused.len()).sum();
        if played.iter().all(|played| played.faults.is_empty()) {
            let good = self
                .paint
                .tone(Tone::Good, format!("{tasks} calls were admitted, {refused} were rejected, no cap was exceeded."));
            show::print(&format!("\n{good}\n\n{NEXT}"));
        }
    }
}

/// Draws over the lines that differ, so that nothing flickers.
fn redraw(drawn: &mut Vec<String>, lines: Vec<String>) {
    let same = drawn.iter().zip(&lines).take_while(|(old, new)| old == new).count();
    if same == lines.len() && same == drawn.len() {
        return;
    }
    let up = drawn.len() - same;
    let back = if up > 0 { format!("\u{1b}[{up}A") } else { String::new() };
    // Down to the end of the screen: what stood there is drawn anew.
    let anew: String = lines[same..].iter().map(|line| format!("{line}\n")).collect();
    show::print(&format!("{back}\u{1b}[J{anew}"));
    *drawn = lines;
}
