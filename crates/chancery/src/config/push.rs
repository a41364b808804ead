//! The `[push]` section: webhooks, how they are delivered, and `[push.origins."https://…"]` for what holds for one origin.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chancery_core::notify::{Bounds, EngineConfig, NotifyConfig, SlotLimits};
use chancery_core::push::PushLimits;
use chancery_outbound::push::{CourierConfig, OriginRules};
use serde::{Deserialize, Serialize};
use url::Url;

use super::effect::declare_section;
use super::section::Section;

/// The `[push]` section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PushSection {
    /// Whether callers can have webhooks.
    pub offer: PushOffer,
    /// The limits on registrations.
    pub limits: PushLimits,
    /// The limits on one delivery.
    pub courier: CourierConfig,
    /// The schedule of deliveries.
    pub notify: NotifyConfig,
    /// The limits on retries.
    pub bounds: Bounds,
    /// The limits on deliveries at the same time.
    pub slots: SlotLimits,
    /// By `scheme://host:port`.
    pub origins: BTreeMap<String, OriginRules>,
}

/// Whether there are webhooks at all, and what their owners see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PushOffer {
    /// Whether callers can have webhooks.
    pub enabled: bool,
    /// Whether owners can read back the tokens and credentials they registered.
    pub show_secrets: bool,
    /// Whether a webhook registered for an existing task first receives the task's current state.
    pub snapshot: bool,
}

declare_section!(PushOffer { enabled: Restart, show_secrets: Restart, snapshot: Restart });

impl Default for PushOffer {
    fn default() -> Self {
        Self { enabled: true, show_secrets: false, snapshot: false }
    }
}

impl PushSection {
    pub(crate) fn engine(&self) -> EngineConfig {
        let lenient = self.origins.iter().filter(|(_, rules)| rules.retry_4xx).map(|(origin, _)| origin.as_str().into());
        EngineConfig {
            notify: self.notify.clone(),
            bounds: self.bounds.clone(),
            slots: self.slots.clone(),
            lenient: lenient.collect::<HashSet<Arc<str>>>(),
            exchange: Duration::from_millis(self.courier.exchange_ms),
        }
    }

    pub(crate) fn origins(&self) -> Arc<HashMap<String, OriginRules>> {
        Arc::new(self.origins.clone().into_iter().collect())
    }
}

pub(super) fn read(push: &mut Section<'_, '_>) -> PushSection {
    PushSection {
        offer: push.fields(),
        limits: push.fields(),
        courier: push.fields(),
        notify: push.fields(),
        bounds: push.fields(),
        slots: push.fields(),
        origins: push.section("origins", read_origins).unwrap_or_default(),
    }
}

fn read_origins(origins: &mut Section<'_, '_>) -> BTreeMap<String, OriginRules> {
    let mut read = BTreeMap::new();
    origins.each(|name, section| {
        let rules: OriginRules = section.fields();
        match origin(name) {
            Ok(origin) => {
                if read.insert(origin, rules).is_some() {
                    section.complain("is there twice".to_owned());
                }
            }
            Err(fault) => section.complain(fault.to_owned()),
        }
    });
    read
}

/// `scheme://host:port`, the port always there.
pub(crate) fn origin(text: &str) -> Result<String, &'static str> {
    const FORM: &str = "an origin is https://host or https://host:port, without a path";
    let url = Url::parse(text).map_err(|_| FORM)?;
    let (host, port) = (url.host_str().ok_or(FORM)?, url.port_or_known_default().ok_or(FORM)?);
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !bare || !matches!(url.scheme(), "http" | "https") {
        return Err(FORM);
    }
    Ok(format!("{}://{host}:{port}", url.scheme()))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn an_origin_is_read_as_deliveries_name_it() {
        let text = "[push]\nallow_http = true\n[push.origins.\"https://A.example\"]\nretry_4xx = true\nprofile = 'neuralpost'\n";
        let push = Config::parse(text).unwrap().push;
        assert_eq!(push.origins.keys().collect::<Vec<_>>(), ["https://a.example:443"]);
        assert!(push.engine().lenient.contains("https://a.example:443"));
        for wrong in ["a.example", "https://a.example/x", "ftp://a.example", "https://u@a.example"] {
            let found = Config::parse(&format!("[push.origins.\"{wrong}\"]\n")).unwrap_err();
            assert!(found[0].message.contains("an origin is"), "{found:?}");
        }
    }

    #[test]
    fn a_schedule_nobody_can_mean_is_a_fault() {
        for wrong in ["[]", "[1]", "[0, 99999999]", "['now']"] {
            assert!(Config::parse(&format!("[push]\nschedule_s = {wrong}\n")).is_err(), "{wrong}");
        }
        let text = "[push]\nschedule_s = [0, 1]\nbarrier_ms = 0\nin_flight = 3\nbacklog_events = 4\nconfigs_per_task = 5\n";
        let push = Config::parse(text).unwrap().push;
        assert_eq!(push.notify.schedule().attempts(), 2);
        assert_eq!(
            (push.notify.barrier_ms, push.slots.in_flight, push.bounds.backlog_events, push.limits.configs_per_task),
            (0, 3, 4, 5)
        );
    }
}
