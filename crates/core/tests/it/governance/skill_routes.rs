//! A call at the root address that names a skill is served by an agent that lists it, and by nobody its caller may not call.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_core::routing::{RoutingConfig, SelectorName};
use chancery_core::{Agent, Agents, Answer, FreezeScope, GOVERNANCE_EXTENSION, SkillRouting, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{
    CallContext, CallerStanding, ContextId, Error, ErrorKind, GetTask, IdentityProof, ListTasks, MayCall, Message, Reply,
    Request, SendMessage, Task, TaskId, TaskState,
};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, message, metadata, to};

/// Asks back when it is told to, and is done with everything else.
fn asking() -> impl TaskRunner {
    Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        if turn.message.first_text() == Some("ask") {
            let question = updates.text("which?");
            return Ok(updates.input_required(question));
        }
        Ok(updates.complete(None))
    })
}

/// `front` answers at the root; `b` and `c` list the same skill, and each one of its own.
fn plan(rules: &Value) -> Plan {
    Plan::new(rules).skilled("front", &["plan"], asking()).skilled("b", &["sum", "talk"], asking()).skilled(
        "c",
        &["sum", "draw"],
        asking(),
    )
}

fn taking_turns(governed_plane: &GovernedPlane) {
    let config = RoutingConfig { default_selector: SelectorName::RoundRobin, seed: Some(7), ..RoutingConfig::default() };
    governed_plane.plane.set_skill_routing(SkillRouting::new(&config, 0));
}

fn for_skill(skill: &str) -> SendMessage {
    message("work", json!({ "skill": skill }))
}

fn may_call(grants: &[&str]) -> CallContext {
    let may_call = MayCall::Only(grants.iter().map(|grant| grant.parse().unwrap()).collect());
    let standing = CallerStanding { proof: IdentityProof::ApiKey, may_call, ..CallerStanding::default() };
    CallContext { standing: Arc::new(standing), ..caller("ada") }
}

async fn served_by(governed_plane: &GovernedPlane, task: &Task) -> String {
    governed_plane.plane.operator_get(task.id.as_str()).await.unwrap().0.task.agent.to_string()
}

/// Who serves a call.
async fn server(governed_plane: &GovernedPlane, context: &CallContext, send: SendMessage) -> Result<String, Error> {
    let task = governed_plane.send(context, send).await?;
    Ok(served_by(governed_plane, &task).await)
}

async fn get(governed_plane: &GovernedPlane, context: &CallContext, id: &TaskId) -> Result<Arc<Task>, ErrorKind> {
    let get = GetTask { tenant: None, id: id.clone(), history_length: None };
    match governed_plane.plane.call(context, Request::GetTask(get)).await.map_err(|error| error.kind)? {
        Answer::Reply(Reply::Task(shown)) => Ok(shown.task),
        other => panic!("{other:?}"),
    }
}

async fn listed(governed_plane: &GovernedPlane, context: &CallContext) -> usize {
    match governed_plane.plane.call(context, Request::ListTasks(ListTasks::default())).await.unwrap() {
        Answer::Reply(Reply::Tasks(page)) => page.tasks.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_skill_is_served_by_the_root_if_it_lists_it_and_else_by_who_does() {
    let governed_plane = plan(&json!({})).build();
    let ada = caller("ada");
    for (said, agent) in [
        (json!({ "skill": "plan" }), "front"),
        (json!({ "skill": "talk" }), "b"),
        (json!({ "skill": "draw" }), "c"),
        (json!({ "ruvector": { "skill": "draw" } }), "c"),
        (json!({ GOVERNANCE_EXTENSION: { "skill": "draw" } }), "c"),
        // As before: whoever is at the root makes of it what it can.
        (json!({ "skill": "nobody-lists-this" }), "front"),
        (json!({ "skill": 7 }), "front"),
        (Value::Null, "front"),
    ] {
        assert_eq!(server(&governed_plane, &ada, message("work", said.clone())).await.unwrap(), agent, "{said}");
    }
    let beside = SendMessage { metadata: Some(metadata(json!({ "skill": "talk" }))), ..message("work", Value::Null) };
    assert_eq!(server(&governed_plane, &ada, beside).await.unwrap(), "b");
    assert_eq!(
        server(&governed_plane, &to("c", ada.clone()), for_skill("talk")).await.unwrap(),
        "c",
        "an address says which agent"
    );

    governed_plane.plane.set_skill_routing(SkillRouting::new(&RoutingConfig { by_skill: false, ..RoutingConfig::default() }, 0));
    assert_eq!(server(&governed_plane, &ada, for_skill("talk")).await.unwrap(), "front", "switched off");
}

#[tokio::test]
async fn nobody_is_routed_to_an_agent_it_may_not_call_or_cannot_see() {
    let governed_plane = plan(&json!({})).build();
    for (grants, skill, agent) in [
        (&["front", "b"][..], "sum", Ok("b")),
        (&["front", "c"], "sum", Ok("c")),
        (&["c/sum"], "sum", Ok("c")),
        (&["front", "c/draw"], "sum", Ok("front")),
        (&["front"], "sum", Ok("front")),
        (&["b"], "draw", Err(ErrorKind::PermissionDenied)),
        (&["b/talk"], "sum", Err(ErrorKind::PermissionDenied)),
        (&[], "sum", Err(ErrorKind::PermissionDenied)),
    ] {
        for _ in 0..3 {
            let served = server(&governed_plane, &may_call(grants), for_skill(skill)).await;
            let served = served.as_deref().map_err(|error| error.kind);
            assert_eq!(served, agent, "{grants:?} {skill}");
        }
    }
    let refused = server(&governed_plane, &may_call(&["b/talk"]), for_skill("sum")).await.unwrap_err();
    assert_eq!(refused.message, "ada may not call the agent front", "and learns of no other agent");

    // An agent for the others of this process is not offered, and a skill of an extended card only to those who proved themselves.
    let agents = governed_plane.plane.agents();
    let (b, c) = (agents.get("b").unwrap(), agents.get("c").unwrap());
    let hidden = Agent { exposed: false, ..Agent::clone(c) };
    let extended = Agent { card: Arc::default(), extended: Some(Arc::clone(&b.card)), ..Agent::clone(b) };
    governed_plane.plane.set_agents(Agents::clone(&agents).with(hidden).with(extended));
    assert_eq!(server(&governed_plane, &caller("ada"), for_skill("draw")).await.unwrap(), "front");
    assert_eq!(server(&governed_plane, &caller("ada"), for_skill("talk")).await.unwrap(), "b");
    let nobody = CallContext { standing: Arc::default(), ..caller("ada") };
    assert_eq!(server(&governed_plane, &nobody, for_skill("talk")).await.unwrap(), "front");
}

#[tokio::test]
async fn a_task_is_found_at_the_root_and_stays_with_its_agent() {
    let governed_plane = plan(&json!({})).build();
    taking_turns(&governed_plane);
    let ada = caller("ada");
    for _ in 0..4 {
        let asked = governed_plane.send(&ada, message("ask", json!({ "skill": "sum" }))).await.unwrap();
        assert_eq!(asked.status.state, TaskState::InputRequired);
        let agent = served_by(&governed_plane, &asked).await;
        assert_eq!(get(&governed_plane, &ada, &asked.id).await.unwrap().id, asked.id);
        assert_eq!(get(&governed_plane, &caller("bob"), &asked.id).await.unwrap_err(), ErrorKind::TaskNotFound);
        let other = if agent == "b" { "c" } else { "b" };
        assert_eq!(get(&governed_plane, &to(other, ada.clone()), &asked.id).await.unwrap_err(), ErrorKind::TaskNotFound);
        // With the skill or without it.
        for said in [json!({ "skill": "sum" }), Value::Null] {
            let mut more = message("ask", said);
            more.message = Arc::new(Message { task_id: Some(asked.id.clone()), ..more.message.as_ref().clone() });
            let answered = governed_plane.send(&ada, more).await.unwrap();
            assert_eq!((&answered.id, served_by(&governed_plane, &answered).await), (&asked.id, agent.clone()));
        }
        assert_eq!(governed_plane.cancel(&ada, &asked.id).await.unwrap().status.state, TaskState::Canceled);
    }
    // A task that was made at its agent's address is found there alone, and lists are of one agent.
    let direct = governed_plane.send(&to("b", ada.clone()), for_skill("sum")).await.unwrap();
    assert_eq!(get(&governed_plane, &ada, &direct.id).await.unwrap_err(), ErrorKind::TaskNotFound);
    let lists = [ada.clone(), to("b", ada.clone()), to("c", ada.clone())];
    for (context, count) in lists.iter().zip([0, 3, 2]) {
        assert_eq!(listed(&governed_plane, context).await, count, "{:?}", context.agent);
    }
    // Whoever may no longer call an agent does not reach its tasks.
    let routed = governed_plane.send(&ada, for_skill("talk")).await.unwrap();
    assert!(get(&governed_plane, &may_call(&["front", "b"]), &routed.id).await.is_ok());
    assert_eq!(get(&governed_plane, &may_call(&["front", "c"]), &routed.id).await.unwrap_err(), ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn the_selectors_choose_among_all_that_list_a_skill() {
    let governed_plane = plan(&json!({ "prices": { "b": "0.03", "c": "0.01" } })).build();
    taking_turns(&governed_plane);
    let ada = caller("ada");
    let mut served: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..10 {
        *served.entry(server(&governed_plane, &ada, for_skill("sum")).await.unwrap()).or_default() += 1;
    }
    assert_eq!(served, BTreeMap::from([("b".to_owned(), 5), ("c".to_owned(), 5)]));

    let cheapest = RoutingConfig { default_selector: SelectorName::CheapestUnderLatency, ..RoutingConfig::default() };
    governed_plane.plane.set_skill_routing(SkillRouting::new(&cheapest, 0));
    for _ in 0..5 {
        assert_eq!(server(&governed_plane, &ada, for_skill("sum")).await.unwrap(), "c", "both were measured, and one is cheaper");
    }
    governed_plane.plane.freeze(FreezeScope::Agent("c".into()), "operator", None).await.unwrap();
    assert_eq!(server(&governed_plane, &ada, for_skill("sum")).await.unwrap(), "b", "nothing goes to an agent that is frozen");
    governed_plane.plane.freeze(FreezeScope::Agent("b".into()), "operator", None).await.unwrap();
    assert_eq!(server(&governed_plane, &ada, for_skill("sum")).await.unwrap_err().kind, ErrorKind::Frozen);
}

#[tokio::test]
async fn a_call_that_comes_again_and_a_conversation_go_to_the_same_agent() {
    let governed_plane = plan(&json!({})).build();
    taking_turns(&governed_plane);
    for round in 0..4 {
        let ada = CallContext { idempotency_key: Some(format!("key-{round}").into()), ..caller("ada") };
        let first = governed_plane.send(&ada, for_skill("sum")).await.unwrap();
        let again = governed_plane.send(&ada, for_skill("sum")).await.unwrap();
        assert_eq!(first.id, again.id, "nothing is run twice");
        let other = governed_plane.send(&ada, for_skill("draw")).await.unwrap_err();
        assert_eq!(other.kind, ErrorKind::IdempotencyConflict);

        let agent = served_by(&governed_plane, &first).await;
        let mut next = for_skill("sum");
        let context_id: Option<ContextId> = Some(first.context_id.clone());
        next.message = Arc::new(Message { context_id, ..next.message.as_ref().clone() });
        for _ in 0..2 {
            assert_eq!(server(&governed_plane, &caller("ada"), next.clone()).await.unwrap(), agent);
        }
    }
}

#[tokio::test]
async fn the_agent_that_serves_is_the_one_that_is_charged_and_explained() {
    let rules = json!({ "budget": { "agent": { "b": { "max_usd": "0.03", "window": "1h" } } }, "prices": { "b": "0.02" } });
    let governed_plane = plan(&rules).build();
    let ada = caller("ada");
    let task = governed_plane.send(&ada, for_skill("talk")).await.unwrap();
    let (governed, _) = governed_plane.plane.explain_task(&task.id).await.unwrap().unwrap();
    assert_eq!((governed.spend.settled.usd.0, governed.kinship.skill.as_deref()), (20_000, Some("talk")));
    assert_eq!(governed_plane.standing("agent:b").unwrap().settled.usd.0, 20_000);
    let tree = governed_plane.plane.trees(task.id.as_str()).await.unwrap().remove(0);
    assert_eq!(&*tree.tasks[0].agent, "b");

    let refused = governed_plane.send(&ada, for_skill("talk")).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::BudgetExhausted);
    assert!(refused.to_string().contains("agent=b"), "{refused}");
    let decision = governed_plane.plane.decisions(1).await.unwrap().remove(0);
    assert_eq!((&*decision.agent, decision.refused.as_deref()), ("b", Some("BUDGET_EXHAUSTED")));
}
