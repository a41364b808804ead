//! The `[agents.NAME]` section that an agent needs, and how it gets into a config file.

use std::path::Path;

use chancery::config::{BindingSetting, CallSettings, ConfigFile};
use chancery::protocol::Binding;
use chancery_outbound::remote::{AddressInUse, StreamMode};

use super::super::super::Failure;
use super::is_plain;
use super::trial::Trial;

/// A section of a config file.
pub(super) struct Snippet {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) bearer_env: Option<String>,
    pub(super) api_key_env: Option<String>,
    pub(super) settings: CallSettings,
}

/// The settings that make a node call the agent as it works best. What a node would find out by itself at the first call is left
/// out, unless it would cost the first caller its answer.
pub(super) fn suggested(given: CallSettings, used: Option<&AddressInUse>, trials: &[Trial]) -> CallSettings {
    let mut settings = given;
    let best = trials.iter().find(|trial| trial.works("unary") && trial.works("stream"));
    let Some(best) = best.or_else(|| trials.iter().find(|trial| trial.answers())) else { return settings };
    if used.is_none_or(|used| used.interface.version != best.interface.version) {
        settings.version = Some(best.interface.version);
    }
    if used.is_none_or(|used| used.interface.binding != best.interface.binding) {
        settings.binding = Some(match best.interface.binding {
            Binding::JsonRpc => BindingSetting::JsonRpc,
            Binding::Rest => BindingSetting::Rest,
            Binding::Grpc => BindingSetting::Grpc,
            Binding::Swp => BindingSetting::Swp,
        });
    }
    let card_streams = used.is_some_and(|used| used.streams);
    match (best.works("unary"), best.works("stream")) {
        // An agent that does not say that it streams is not asked to.
        (true, false) if card_streams => settings.stream = StreamMode::Never,
        (false, true) => settings.stream = StreamMode::Always,
        _ => {}
    }
    settings
}

impl Snippet {
    pub(super) fn text(&self) -> String {
        let mut section = toml::Table::new();
        section.insert("url".to_owned(), self.url.clone().into());
        let credential = self.bearer_env.as_ref().map(|name| ("bearer_env", name));
        if let Some((key, name)) = credential.or_else(|| self.api_key_env.as_ref().map(|name| ("api_key_env", name))) {
            let table = toml::Table::from_iter([(key.to_owned(), name.clone().into())]);
            section.insert("credentials".to_owned(), table.into());
        }
        if !is_plain(&self.settings)
            && let Ok(settings) = toml::Table::try_from(&self.settings)
        {
            section.extend(settings);
        }
        let lines = section.iter().map(|(key, value)| format!("{key} = {value}\n"));
        format!("[agents.{}]\n{}", self.name, lines.collect::<String>())
    }

    /// Adds the section behind everything that the file has. A file that would be faulty with it stays as it is.
    pub(super) fn append_to(&self, file: &Path) -> Result<(), Failure> {
        let shown = file.display();
        let before = std::fs::read_to_string(file).map_err(|error| {
            Failure::Usage(format!("{shown} cannot be read: {error}; `chancery init` makes one, --config names another"))
        })?;
        let read: toml::Table = before.parse().map_err(|fault| Failure::Usage(format!("{shown}: {fault}")))?;
        let has = |section: &toml::Value| section.get(&self.name).is_some();
        if read.get("agents").is_some_and(has) {
            let message = format!("{shown} has [agents.{}] already; change it there, or use --name", self.name);
            return Err(Failure::Refused(message));
        }
        let gap = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
        let gap = if before.is_empty() || before.ends_with('\n') { gap.to_owned() } else { format!("\n{gap}") };
        let after = format!("{before}{gap}{}", self.text());
        // Beside the file first, so that nobody ever reads half of it, and a watching node sees one change.
        let beside = file.with_extension("toml.new");
        let io = |error: std::io::Error| Failure::Refused(format!("{shown} cannot be written: {error}"));
        std::fs::write(&beside, after).map_err(io)?;
        if let Ok(metadata) = std::fs::metadata(file) {
            std::fs::set_permissions(&beside, metadata.permissions()).map_err(io)?;
        }
        if let Err(fault) = ConfigFile::read(&beside) {
            let _ = std::fs::remove_file(&beside);
            return Err(Failure::Refused(format!("{shown} would be faulty with the section: {fault}")));
        }
        std::fs::rename(&beside, file).map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::tried;
    use super::*;
    use chancery::protocol::Version;
    use chancery_outbound::client::Interface;

    fn interface(version: Version) -> Interface {
        Interface { url: "http://127.0.0.1:9/".to_owned(), binding: Binding::JsonRpc, version, tenant: None }
    }

    fn used() -> AddressInUse {
        AddressInUse { interface: interface(Version::V1_0), listed: String::new(), change: None, streams: true }
    }

    fn snippet(settings: CallSettings) -> Snippet {
        let (name, url) = ("weather".to_owned(), "http://127.0.0.1:9".to_owned());
        Snippet { name, url, bearer_env: Some("TOKEN".to_owned()), api_key_env: None, settings }
    }

    #[test]
    fn settings_say_only_what_differs_from_what_a_node_would_do() {
        let of = |trials: &[Trial]| suggested(CallSettings::default(), Some(&used()), trials);
        assert!(of(&[tried(interface(Version::V1_0), true, true)]).is_default());
        assert!(of(&[]).is_default());
        assert_eq!(of(&[tried(interface(Version::V1_0), true, false)]).stream, StreamMode::Never);
        assert_eq!(of(&[tried(interface(Version::V1_0), false, true)]).stream, StreamMode::Always);
        let older = of(&[tried(interface(Version::V1_0), false, false), tried(interface(Version::V0_3), true, true)]);
        assert_eq!((older.version, older.binding), (Some(Version::V0_3), None));
    }

    #[test]
    fn a_section_is_appended_once_and_the_rest_of_the_file_stays() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("chancery.toml");
        let before = "# mine\n[agents.echo]\nrun = \"echo\"";
        std::fs::write(&file, before).unwrap();
        let settings = CallSettings { stream: StreamMode::Never, version: Some(Version::V0_3), ..CallSettings::default() };
        snippet(settings.clone()).append_to(&file).unwrap();
        let after = std::fs::read_to_string(&file).unwrap();
        assert!(after.starts_with(before) && after.contains("\n\n[agents.weather]\n"), "{after}");
        let config = ConfigFile::read(&file).unwrap().config;
        let (name, agent) = &config.agents[1];
        let chancery::config::AgentSource::Remote(remote) = &agent.source else { panic!("it is elsewhere") };
        assert_eq!((name.as_str(), &remote.calls), ("weather", &settings));
        assert_eq!(remote.credentials.bearer_env.as_deref(), Some("TOKEN"));
        assert!(matches!(snippet(settings).append_to(&file), Err(Failure::Refused(_))));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after, "nothing is written twice");
        let nowhere = home.path().join("none.toml");
        assert!(matches!(snippet(CallSettings::default()).append_to(&nowhere), Err(Failure::Usage(_))));
    }
}
