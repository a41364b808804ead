//! Every operation over every binding in every version: a task of one's neighbour, of another tenant and one that never was
//! are answered with the same bytes, and nothing happens to any of them.

use std::collections::BTreeMap;

use chancery_protocol::{
    CancelTask, ContextId, GetTask, ListPushConfigs, ListTasks, Operation, PushConfig, PushConfigRef, Request, SubscribeToTask,
    TaskId, Version,
};

use super::{CALLERS, Town, changed, message};
use crate::support::wire_client::{Combination, RawAnswer, RawCall};

/// What an operation is aimed at.
#[derive(Clone, Debug)]
struct Target {
    task: TaskId,
    context: ContextId,
}

impl Target {
    /// What the caller itself sent may come back; nothing else of it is known to the caller.
    fn without_echo(&self, answer: &RawAnswer) -> RawAnswer {
        answer.replacing(self.task.as_str(), "TASK").replacing(self.context.as_str(), "CONTEXT")
    }
}

fn request(operation: Operation, target: &Target) -> Request {
    let task = target.task.clone();
    let follow_up = || changed(message("ask again"), |message| message.task_id = Some(task.clone()));
    let config = PushConfigRef { tenant: None, task_id: task.clone(), id: Some("config-1".to_owned()) };
    match operation {
        Operation::SendMessage => Request::SendMessage(follow_up()),
        Operation::StreamMessage => Request::StreamMessage(follow_up()),
        Operation::GetTask => Request::GetTask(GetTask { tenant: None, id: task, history_length: None }),
        Operation::ListTasks => {
            Request::ListTasks(ListTasks { context_id: Some(target.context.clone()), ..ListTasks::default() })
        }
        Operation::CancelTask => Request::CancelTask(CancelTask { tenant: None, id: task, metadata: None }),
        Operation::SubscribeToTask => Request::SubscribeToTask(SubscribeToTask { tenant: None, id: task }),
        Operation::CreatePushConfig => Request::CreatePushConfig(PushConfig {
            tenant: None,
            id: Some("config-1".to_owned()),
            task_id: Some(task),
            url: "https://hooks.example/in".to_owned(),
            token: None,
            authentication: None,
        }),
        Operation::GetPushConfig => Request::GetPushConfig(config),
        Operation::ListPushConfigs => {
            Request::ListPushConfigs(ListPushConfigs { tenant: None, task_id: task, page_size: None, page_token: None })
        }
        Operation::DeletePushConfig => Request::DeletePushConfig(config),
        Operation::GetExtendedCard => Request::GetExtendedCard(Default::default()),
    }
}

/// In the original protocol a message names the task it makes or continues, so a foreign name is simply a new task. Its
/// answers differ in their times; `original_names` looks at them.
fn is_told_elsewhere(combination: Combination, operation: Operation) -> bool {
    combination.version == Version::Original && matches!(operation, Operation::SendMessage | Operation::StreamMessage)
}

#[derive(Default)]
struct Tally {
    told: BTreeMap<(String, String), usize>,
    leaks: Vec<String>,
}

impl Tally {
    fn hold(&mut self, combination: Combination, operation: Operation, what: &str, seen: &RawAnswer, expected: &RawAnswer) {
        *self.told.entry((format!("{operation:?}"), combination.name())).or_default() += 1;
        if seen != expected {
            let place = format!("{operation:?} over {}", combination.name());
            self.leaks.push(format!("{place}: {what}\n  seen     {seen:?}\n  expected {expected:?}"));
        }
    }

    fn table(&self) -> String {
        let row = |name: &str, cells: [String; 7]| format!("{name:<18}{}\n", cells.map(|cell| format!("{cell:>18}")).concat());
        let mut table = row("answers held", Combination::ALL.map(Combination::name));
        for operation in Operation::ALL.map(|operation| format!("{operation:?}")) {
            let told = |one: Combination| self.told.get(&(operation.clone(), one.name())).copied().unwrap_or(0).to_string();
            table += &row(&operation, Combination::ALL.map(told));
        }
        format!("{table}{} told, {} leaks", self.told.values().sum::<usize>(), self.leaks.len())
    }
}

/// One caller against everybody else's tasks and one that never was.
async fn try_others(town: &Town, tally: &mut Tally, combination: Combination, caller: &str, all: &[Target], never: &Target) {
    for operation in Operation::ALL {
        if is_told_elsewhere(combination, operation) {
            continue;
        }
        let Some(call) = RawCall::of(combination, &request(operation, never)) else { continue };
        let expected = never.without_echo(&town.ask(caller, call).await);
        let found = matches!(operation, Operation::ListTasks | Operation::GetExtendedCard);
        assert_eq!(expected.is_refusal(), !found, "{operation:?} {combination:?} {expected:?}");
        for (target, (_, owner)) in all.iter().zip(CALLERS).filter(|(_, (_, owner))| *owner != caller) {
            let seen = target.without_echo(&town.request(caller, combination, &request(operation, target)).await);
            tally.hold(combination, operation, &format!("{caller} asked for what is {owner}'s"), &seen, &expected);
        }
    }
}

/// What works with one's own, so that the matrix is not one of refusals for some other reason.
async fn use_own(town: &Town, combination: Combination, caller: &str, own: &Target) {
    use Operation::*;
    let not_the_last = Operation::ALL.into_iter().filter(|operation| *operation != CancelTask);
    for operation in not_the_last.chain([CancelTask]) {
        let mut asked = request(operation, own);
        if let Request::SendMessage(send) | Request::StreamMessage(send) = &mut asked
            && combination.version == Version::Original
        {
            *send = changed(message("ask again"), |_| {});
            send.client_task_id = Some(own.task.as_str().into());
        }
        let Some(call) = RawCall::of(combination, &asked) else { continue };
        let answer = town.ask(caller, call).await;
        assert!(!answer.is_refusal(), "{operation:?} {combination:?} {answer:?}");
        let shown = match operation {
            ListTasks => Some(own.task.as_str()),
            GetTask | CancelTask | SubscribeToTask | SendMessage | StreamMessage => Some(own.task.as_str()),
            CreatePushConfig | GetPushConfig | ListPushConfigs => Some("https://hooks.example/in"),
            _ => None,
        };
        assert!(shown.is_none_or(|id| answer.text().contains(id)), "{operation:?} {combination:?} {answer:?}");
    }
}

/// What a task is told, and what it is then: one that nobody works on, one that is being worked on, and one that is over. The
/// node has only the second at hand, and looks the others up.
const STATES: [(&str, &str); 3] =
    [("ask who is there?", "input-required"), ("sleep 3600000", "working"), ("complete", "completed")];

/// Nobody's task, of the form and length of the real ones, so that only knowing them can make a difference.
fn never(version: Version, round: usize) -> Target {
    let task = match version {
        Version::Original => format!("named-by-nobody----{round:02}"),
        _ => "01907a3c-5b1e-7c44-9d6e-2f1a0b3c4d5e".to_owned(),
    };
    Target { task: task.into(), context: "01907a3c-5b1e-8c44-9d6e-2f1a0b3c4d5e".into() }
}

#[tokio::test]
async fn the_tasks_of_others_are_tasks_that_never_were() {
    let town = Town::new("");
    let mut tally = Tally::default();
    let rounds = Combination::ALL.into_iter().flat_map(|combination| STATES.map(|state| (combination, state)));
    for (round, (combination, (text, state))) in rounds.enumerate() {
        let mut targets = Vec::new();
        for (_, caller) in CALLERS {
            let name = format!("named-by-{caller:-<9}-{round:02}");
            let (task, context) = town.task(caller, combination.version, &name, text, state).await;
            targets.push(Target { task, context });
        }
        let never = never(combination.version, round);
        let get = |target: &Target| request(Operation::GetTask, target);
        let mut before = Vec::new();
        for (target, (_, caller)) in targets.iter().zip(CALLERS) {
            let own = town.request(caller, combination, &get(target)).await;
            assert!(!own.is_refusal() && own.text().contains(target.task.as_str()), "{own:?}");
            before.push(own);
        }
        for (_, caller) in CALLERS {
            try_others(&town, &mut tally, combination, caller, &targets, &never).await;
        }
        for ((target, (_, caller)), before) in targets.iter().zip(CALLERS).zip(&before) {
            let after = town.request(caller, combination, &get(target)).await;
            assert_eq!(after, *before, "somebody else's call did something to a task of {caller}");
            if state == "input-required" {
                use_own(&town, combination, caller, target).await;
            }
        }
    }
    println!("{}", tally.table());
    assert!(tally.leaks.is_empty(), "{}", tally.leaks.join("\n"));
    assert_eq!(tally.told.values().sum::<usize>(), 2520, "the matrix has another size");
}

#[tokio::test]
async fn lists_and_their_totals_are_ones_own() {
    let town = Town::new("");
    let mut made = BTreeMap::new();
    for (count, (_, caller)) in (1..).zip(CALLERS) {
        for _ in 0..count {
            let (task, _) = town.waiting_task(caller, Version::V1_0, "").await;
            made.entry(caller).or_insert_with(Vec::new).push(task.to_string());
        }
    }
    let list = Request::ListTasks(ListTasks::default());
    for combination in Combination::ALL {
        let Some(call) = RawCall::of(combination, &list) else { continue };
        for (_, caller) in CALLERS {
            let answer = town.ask(caller, call.clone()).await;
            let text = answer.text();
            for (owner, tasks) in &made {
                let seen = tasks.iter().filter(|task| text.contains(*task)).count();
                assert_eq!(seen, if *owner == caller { tasks.len() } else { 0 }, "{caller} of {owner}: {answer:?}");
            }
            let total = match combination.binding {
                chancery_protocol::Binding::Grpc => {
                    answer.message::<chancery_wire::pb::v1::proto::ListTasksResponse>().total_size.into()
                }
                _ => {
                    let json = answer.json();
                    let page = json.get("result").unwrap_or(&json);
                    page.get("totalSize").or(page.get("total")).and_then(serde_json::Value::as_u64).map_or(-1, |n| n as i64)
                }
            };
            assert_eq!(total, made[caller].len() as i64, "{combination:?} {answer:?}");
        }
    }
}

#[tokio::test]
async fn the_extended_card_is_the_same_for_everybody_who_may_see_it() {
    let town = Town::new("");
    for combination in Combination::ALL {
        let Some(call) = RawCall::of(combination, &Request::GetExtendedCard(Default::default())) else { continue };
        let first = town.ask(CALLERS[0].1, call.clone()).await;
        assert!(!first.is_refusal() && first.text().contains("Does more."), "{first:?}");
        for (_, caller) in CALLERS {
            assert_eq!(town.ask(caller, call.clone()).await, first, "{caller} over {combination:?}");
            assert!(!first.text().contains(caller), "{first:?}");
        }
    }
}
