//! Names agents that have no configured name: by their card after it was read, by host and port before.

use std::collections::BTreeSet;
use std::sync::Arc;

use chancery_protocol::Timestamp;
use url::Url;

use super::gather::ServedAgents;
use super::remote::{Remote, RemoteParts};
use crate::config::{AgentConfig, AgentSource};

/// As long as a name may be.
const LONGEST: usize = 64;

/// Returns the remote agents, each under the name it is served under. `taken` has the names of all others.
///
/// A name that was given before is kept, so that tasks and keys are found again. A data folder from before
/// agents were named by their cards has keys for `agent`, `agent-2` and so on. There those names stay.
pub(super) async fn settle_names(
    remote_parts: &RemoteParts,
    elsewhere: Vec<(usize, String, AgentConfig)>,
    taken: impl Iterator<Item = String>,
    standing: Option<&ServedAgents>,
    now: Timestamp,
) -> Vec<(usize, String, AgentConfig)> {
    let mut taken: BTreeSet<String> = taken.collect();
    taken.extend(elsewhere.iter().filter(|(_, _, agent)| !agent.unnamed).map(|(_, name, _)| name.clone()));
    let mut looks = Vec::new();
    for (index, given, agent) in elsewhere {
        let url = if agent.unnamed { first_url(&agent) } else { None };
        let Some(url) = url else {
            looks.push((index, given, agent, None));
            continue;
        };
        let before = remote_parts
            .agent_registry
            .name_of(&url)
            .or_else(|| remote_parts.known_names.contains(&given).then(|| given.clone()));
        let before = before.filter(|name| !taken.contains(name));
        let by_address = host_and_port(&url);
        let is_there = standing.is_some_and(|standing| standing.same(&by_address, &agent, false).is_some());
        match before {
            Some(name) => {
                taken.insert(name.clone());
                keep(remote_parts, &url, &name);
                looks.push((index, name, agent, None));
            }
            None if is_there => looks.push((index, by_address, agent, None)),
            None => {
                let look = Remote::new(&by_address, &agent, false, remote_parts).ok().flatten().map(|remote| async move {
                    remote.first_cards(now).await;
                    remote.card_name()
                });
                looks.push((index, by_address, agent, Some((url, look))));
            }
        }
    }
    let looked = looks.into_iter().map(|(index, name, agent, look)| async move {
        let look = match look {
            Some((url, Some(look))) => Some((url, look.await)),
            Some((url, None)) => Some((url, None)),
            None => None,
        };
        (index, name, agent, look)
    });
    let mut named = Vec::new();
    for (index, name, agent, look) in futures::future::join_all(looked).await {
        let Some((url, card_name)) = look else {
            taken.insert(name.clone());
            named.push((index, name, agent));
            continue;
        };
        let from_card = card_name.as_deref().and_then(agent_slug);
        let name = unique(from_card.as_deref().unwrap_or(&name), &taken);
        // What could not be read yet may say its name later.
        if card_name.is_some() {
            keep(remote_parts, &url, &name);
        }
        taken.insert(name.clone());
        named.push((index, name, agent));
    }
    named
}

fn keep(remote_parts: &RemoteParts, url: &str, name: &str) {
    if let Err(error) = remote_parts.agent_registry.keep_name(url, name) {
        tracing::error!(agent = name, %error, "cannot store the name of an agent; the agent may have another name after a restart");
    }
}

/// The first URL of a remote agent, which identifies it.
pub(super) fn first_url(agent: &AgentConfig) -> Option<String> {
    match &agent.source {
        AgentSource::Remote(remote) => remote.urls.first().cloned(),
        AgentSource::BuiltIn(_) => None,
    }
}

/// The name of an agent whose card was never read.
pub(super) fn host_and_port(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(Url::host_str).unwrap_or_default();
    let port = parsed.as_ref().and_then(Url::port_or_known_default).map(|port| format!("-{port}")).unwrap_or_default();
    agent_slug(&format!("{host}{port}")).unwrap_or_else(|| "agent".to_owned())
}

/// A text as a name of an agent: 1 to 64 of a-z, 0-9 and `-`. `None` if nothing of it can be in one.
pub fn agent_slug(text: &str) -> Option<String> {
    let mut name = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' | '_' => name.push(c),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.truncate(LONGEST);
    let name = name.trim_end_matches('-').to_owned();
    (!name.is_empty()).then_some(name)
}

/// The name itself, or the first of `NAME-2`, `NAME-3`… that is free.
pub(super) fn unique(name: &str, taken: &BTreeSet<String>) -> String {
    let numbered = |number: u32| {
        let tail = format!("-{number}");
        let head: String = name.chars().take(LONGEST - tail.len()).collect();
        format!("{head}{tail}")
    };
    let mut all = std::iter::once(name.to_owned()).chain((2..).map(numbered));
    all.find(|name| !taken.contains(name)).unwrap_or_else(|| name.to_owned())
}

/// A remote agent that was named by host and port, under the name that its card says now.
pub(super) fn renamed(remote: &Remote, taken: &BTreeSet<String>, remote_parts: &RemoteParts) -> Option<Arc<Remote>> {
    let (name, url) = (agent_slug(&remote.card_name()?)?, remote.config.urls.first()?);
    let name = unique(&name, taken);
    let agent = AgentConfig { unnamed: true, ..AgentConfig::from(AgentSource::Remote(Box::new(remote.config.clone()))) };
    keep(remote_parts, url, &name);
    Remote::new(&name, &agent, false, remote_parts).ok().flatten().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::is_agent_name;

    #[test]
    fn a_cards_name_becomes_one_that_can_stand_in_a_url() {
        for (text, name) in [
            ("Weather Agent", Some("weather-agent")),
            ("  --My  (new) Agent!! ", Some("my-new-agent")),
            ("snake_case", Some("snake_case")),
            ("Ünïcode 7", Some("n-code-7")),
            ("天気", None),
            ("", None),
        ] {
            assert_eq!(agent_slug(text).as_deref(), name, "{text}");
        }
        let long = agent_slug(&"a-".repeat(80)).unwrap();
        assert!(is_agent_name(&long) && long.len() == 63, "{long}");
    }

    #[test]
    fn names_are_told_apart_by_a_number_and_stay_short_enough() {
        let taken = BTreeSet::from(["a".to_owned(), "a-2".to_owned(), "b".repeat(64)]);
        assert_eq!((unique("c", &taken), unique("a", &taken)), ("c".to_owned(), "a-3".to_owned()));
        let long = unique(&"b".repeat(64), &taken);
        assert!(is_agent_name(&long) && long.ends_with("b-2"), "{long}");
    }

    #[test]
    fn an_agent_whose_card_was_never_read_is_named_by_host_and_port() {
        for (url, name) in [
            ("http://localhost:9001/a", "localhost-9001"),
            ("https://Agent.Example.org", "agent-example-org-443"),
            ("http://[::1]:9001", "1-9001"),
        ] {
            assert_eq!(host_and_port(url), name);
        }
    }
}
