//! Whether a caller may call an agent, and which of its skills.

use chancery_protocol::{AgentName, CallContext, Error, ErrorKind, Reach, Request};

use crate::govern::terms::CallTerms;

/// Asked before anything else is: who may not call an agent learns nothing of what is there.
pub(crate) fn granted(context: &CallContext, agent: &AgentName, request: &Request) -> Result<(), Error> {
    let skills = match context.standing.may_call.reach(agent) {
        Reach::Whole => return Ok(()),
        Reach::Nothing => {
            let message = format!("{} may not call the agent {}", context.caller.name, agent);
            return Err(Error::new(ErrorKind::PermissionDenied, message).with_fact("agent", agent));
        }
        Reach::Skills(skills) => skills,
    };
    let (Request::SendMessage(send) | Request::StreamMessage(send)) = request else { return Ok(()) };
    let asked = CallTerms::of(send)?.skill;
    match &asked {
        Some(skill) if skills.contains(&&**skill) => Ok(()),
        _ => {
            let asked = asked.as_deref().map_or("no skill".to_owned(), |skill| format!("the skill {skill:?}"));
            let allowed = skills.join(", ");
            let message = format!(
                "the message asks for {asked}; {} may ask {} only for: {allowed} (name the skill in metadata.skill)",
                context.caller.name, agent
            );
            Err(Error::new(ErrorKind::PermissionDenied, message).with_fact("agent", agent).with_fact("skills", allowed))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{CallerStanding, GetTask, MayCall, Message, Metadata, Part, Role, SendConfiguration, SendMessage};
    use serde_json::json;
    use std::sync::Arc;

    fn judge(grants: Option<&[&str]>, request: &Request) -> Result<(), ErrorKind> {
        let may_call = match grants {
            None => MayCall::Everything,
            Some(grants) => MayCall::Only(grants.iter().map(|grant| grant.parse().unwrap()).collect()),
        };
        let standing = Arc::new(CallerStanding { may_call, ..CallerStanding::default() });
        let context = CallContext { standing, ..chancery_testkit::call_context() };
        granted(&context, &"a".into(), request).map_err(|error| error.kind)
    }

    fn send(metadata: Option<serde_json::Value>) -> Request {
        let metadata = metadata.map(|value| Metadata::from_object(value.as_object().unwrap().clone()));
        let message = Arc::new(Message::of_parts(Role::User, "m", vec![Part::text("x")]));
        Request::SendMessage(SendMessage {
            tenant: None,
            message,
            configuration: SendConfiguration::default(),
            metadata,
            client_task_id: None,
            unknown: Default::default(),
        })
    }

    #[test]
    fn a_caller_calls_what_it_was_granted_and_nothing_else() {
        let get = Request::GetTask(GetTask { tenant: None, id: "x".into(), history_length: None });
        let plain = send(None);
        for (grants, request, allowed) in [
            (None, &plain, true),
            (Some(&["a"][..]), &plain, true),
            (Some(&["b"]), &plain, false),
            (Some(&["b"]), &get, false),
            (Some(&[]), &get, false),
            (Some(&["a/x"]), &get, true),
            (Some(&["a/x"]), &plain, false),
            (Some(&["a/x"]), &send(Some(json!({ "skill": "x" }))), true),
            (Some(&["a/x"]), &send(Some(json!({ "skill": "y" }))), false),
            (Some(&["a/x"]), &send(Some(json!({ "ruvector": { "skill": "x" } }))), true),
            (Some(&["a/x", "a/y"]), &send(Some(json!({ "skill": "y" }))), true),
        ] {
            let expected = if allowed { Ok(()) } else { Err(ErrorKind::PermissionDenied) };
            assert_eq!(judge(grants, request), expected, "{grants:?} {request:?}");
        }
    }
}
