//! The `[agents.NAME]` sections.

use std::path::PathBuf;

use chancery_protocol::AgentSkill;
use serde::Deserialize;

use super::keys::KeySource;
use super::section::Section;
use crate::agents::BuiltIn;

/// The longest name an agent can be mounted under.
const LONGEST_NAME: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    pub run: BuiltIn,
    /// The name on the card, if not the agent's own.
    pub title: Option<String>,
    /// The description on the card, if not the agent's own.
    pub description: Option<String>,
    /// The agent's own key, if it is not one the node makes and keeps.
    pub key: Option<KeySource>,
    /// Skills that only callers who proved who they are get to see.
    pub extended_skills: Vec<ExtendedSkill>,
}

/// One skill of the extended card.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtendedSkill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
}

impl AgentConfig {
    pub fn of(run: BuiltIn) -> Self {
        Self { run, title: None, description: None, key: None, extended_skills: Vec::new() }
    }
}

impl From<&ExtendedSkill> for AgentSkill {
    fn from(skill: &ExtendedSkill) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            tags: skill.tags.clone(),
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    run: Option<BuiltIn>,
    title: Option<String>,
    description: Option<String>,
    key_file: Option<PathBuf>,
    key_env: Option<String>,
    extended_skills: Vec<ExtendedSkill>,
}

pub(super) fn read_all(agents: &mut Section<'_, '_>) -> Vec<(String, AgentConfig)> {
    let mut read = Vec::new();
    agents.each(|name, section| {
        let fields: Fields = section.fields();
        if !is_name(name) {
            section
                .complain(format!("an agent's name is 1 to {LONGEST_NAME} of a-z, 0-9, - and _, because it is part of its URL"));
        }
        let key = KeySource::of(fields.key_file, fields.key_env).unwrap_or_else(|fault| {
            section.complain(fault.to_owned());
            None
        });
        let Fields { run, title, description, extended_skills, .. } = fields;
        match run {
            Some(run) => read.push((name.to_owned(), AgentConfig { run, title, description, key, extended_skills })),
            None if section.has_fault_at("run") => {}
            None => section.complain("needs `run`: \"echo\" or \"conformance\"".to_owned()),
        }
    });
    if read.is_empty() && agents.is_sound() {
        agents.complain("names no agent; leave the section out to get the echo agent".to_owned());
    }
    read
}

/// Whether an agent can be mounted under this name.
pub(crate) fn is_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(legal)
}
