//! `GET /agents`: which agents a caller may call, and what they can do.

use chancery_core::Agent;
use chancery_identity::credentials::Known;
use chancery_protocol::{AgentCard, AgentSkill, CallerStanding, Error, IdentityProof, Reach, Version};
use http::request::Parts;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::doors::Doors;
use crate::own_hosts::CardBase;
use crate::response::{self, DoorResponse, JSON};

const PATH: &str = "/agents";

/// What is looked for. All of it has to fit.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Search {
    /// The id of a skill.
    skill: Option<String>,
    /// Words of a skill: in its id, name, tags or description, in any case.
    q: Option<String>,
    /// The last agent of the page before.
    after: Option<String>,
    limit: Option<usize>,
}

pub(crate) fn is_catalog(head: &Parts, path: &str) -> bool {
    path == PATH && (head.method == Method::GET || head.method == Method::HEAD)
}

impl Doors {
    pub(crate) fn catalog(&self, head: &Parts, known: &Known, base: Option<&CardBase>) -> DoorResponse {
        let search = axum::extract::Query::<Search>::try_from_uri(&head.uri);
        let Ok(axum::extract::Query(search)) = search else {
            let error = Error::invalid_field("query", "is not one of skill, q, after and limit");
            return response::rest_error(&error, Version::V1_0);
        };
        let most = self.settings().limits.catalog_page.max(1);
        let page = search.limit.unwrap_or(most);
        if page == 0 || page > most {
            let error = Error::invalid_field("limit", format!("must be 1 to {most} (limits.catalog_page = {most})"));
            return response::rest_error(&error, Version::V1_0);
        }
        let agents = self.chancery().agents();
        let base = base.map_or_else(|| self.settings().public_url.trim_end_matches('/'), CardBase::as_str);
        let is_later = |agent: &Agent| search.after.as_deref().is_none_or(|after| &*agent.name > after);
        let mut found =
            agents.iter().filter(|agent| is_later(agent)).filter_map(|agent| entry(agent, &known.standing, &search, base));
        let shown: Vec<Value> = found.by_ref().take(page).collect();
        let more = found.next().is_some();
        let next = shown.last().filter(|_| more).map(|last| last["name"].clone());
        let body = json!({ "agents": shown, "next": next });
        response::private(response::whole(StatusCode::OK, JSON, body.to_string().into_bytes()))
    }
}

/// An agent as this caller sees it. `None` if it cannot call it, or is looking for something else.
fn entry(agent: &Agent, standing: &CallerStanding, search: &Search, base: &str) -> Option<Value> {
    if !agent.exposed {
        return None;
    }
    let card: &AgentCard = match &agent.extended {
        Some(extended) if standing.proof != IdentityProof::None => extended,
        _ => &agent.card,
    };
    let skills: Vec<&AgentSkill> = match standing.may_call.reach(&agent.name) {
        Reach::Nothing => return None,
        Reach::Whole => card.skills.iter().collect(),
        Reach::Skills(granted) => card.skills.iter().filter(|skill| granted.contains(&skill.id.as_str())).collect(),
    };
    let is_looked_for = search.skill.is_some() || search.q.is_some();
    if is_looked_for && !skills.iter().any(|skill| search.fits(skill)) {
        return None;
    }
    let skills: Vec<Value> =
        skills.iter().map(|skill| json!({ "id": skill.id, "name": skill.name, "tags": skill.tags })).collect();
    Some(json!({
        "name": agent.name,
        "title": card.name,
        "description": card.description,
        "card": format!("{base}/agents/{}/.well-known/agent-card.json", agent.name),
        "skills": skills,
    }))
}

impl Search {
    fn fits(&self, skill: &AgentSkill) -> bool {
        let words = self.q.as_ref().map(|words| words.to_lowercase());
        let holds = |text: &String| words.as_ref().is_some_and(|words| text.to_lowercase().contains(words));
        let is_it = self.skill.as_ref().is_none_or(|id| *id == skill.id);
        let says_it = [&skill.id, &skill.name, &skill.description].into_iter().chain(&skill.tags).any(holds);
        is_it && (words.is_none() || says_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_looks_into_ids_names_tags_and_descriptions_in_any_case() {
        let skill = AgentSkill {
            id: "sum-up".into(),
            name: "Summary".into(),
            description: "Says it Briefly".into(),
            tags: vec!["Text".into()],
            examples: vec!["nothing".into()],
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        };
        let search = |skill: Option<&str>, words: Option<&str>| Search {
            skill: skill.map(str::to_owned),
            q: words.map(str::to_owned),
            ..Search::default()
        };
        for (wanted, fits) in [
            (search(Some("sum-up"), None), true),
            (search(Some("SUM-UP"), None), false),
            (search(None, Some("SUMM")), true),
            (search(None, Some("briefly")), true),
            (search(None, Some("text")), true),
            (search(None, Some("nothing")), false),
            (search(Some("sum-up"), Some("other")), false),
        ] {
            assert_eq!(wanted.fits(&skill), fits, "{wanted:?}");
        }
    }
}
