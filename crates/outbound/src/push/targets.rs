//! Judges the URLs of registrations by their text, and knows what the operator wants for each origin.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use chancery_core::push::{PushTarget, PushTargets};
use chancery_identity::webhook::HmacSecret;

use super::challenge::{Challenge, Challenger};
use super::config::OriginRules;
use super::headers::is_signing_scheme;
use crate::guard::{Guard, GuardedTarget, TargetHost};

#[derive(Debug)]
pub struct GuardedTargets {
    guard: ArcSwap<Guard>,
    challenger: Challenger,
    origins: Arc<HashMap<String, OriginRules>>,
}

impl GuardedTargets {
    /// `origins` by `scheme://host:port`.
    pub fn new(guard: Guard, origins: Arc<HashMap<String, OriginRules>>, challenge: Challenge) -> Self {
        Self { challenger: Challenger::new(guard.client(), challenge), guard: ArcSwap::from_pointee(guard), origins }
    }

    /// Registrations from now on are judged and challenged by this guard.
    pub fn take_guard(&self, guard: &Guard) {
        self.challenger.take_client(guard.client());
        self.guard.store(Arc::new(guard.clone()));
    }

    /// The guard that registrations are judged by.
    pub fn guard(&self) -> Guard {
        Guard::clone(&self.guard.load())
    }
}

#[async_trait]
impl PushTargets for GuardedTargets {
    fn judge(&self, url: &str) -> Result<PushTarget, String> {
        let target = self.guard.load().check(url).map_err(|fault| fault.to_string())?;
        let origin = origin(&target);
        let rules = self.origins.get(&origin);
        Ok(PushTarget {
            profile: rules.and_then(|rules| rules.profile),
            events: rules.and_then(|rules| rules.events),
            origin: origin.into(),
        })
    }

    fn judge_scheme(&self, scheme: &str, credentials: Option<&str>) -> Result<(), String> {
        match credentials {
            Some(secret) if is_signing_scheme(scheme) => HmacSecret::check(secret).map_err(|fault| fault.to_string()),
            None if is_signing_scheme(scheme) => Err("needs a secret to sign with, as whsec_ and base64".to_owned()),
            _ => Ok(()),
        }
    }

    async fn challenge(&self, url: &str) -> Result<(), String> {
        self.challenger.ask(url).await
    }
}

/// `scheme://host:port`, the port always there.
fn origin(target: &GuardedTarget) -> String {
    let scheme = target.url().scheme();
    let port = target.port();
    match target.host() {
        TargetHost::Name(name) => format!("{scheme}://{name}:{port}"),
        TargetHost::Address(std::net::IpAddr::V6(address)) => format!("{scheme}://[{address}]:{port}"),
        TargetHost::Address(address) => format!("{scheme}://{address}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::GuardConfig;
    use chancery_core::push::PushProfile;

    #[test]
    fn a_url_is_judged_by_its_text_and_its_origin_has_a_port() {
        let config = GuardConfig { allow_nets: vec!["127.0.0.0/8".parse().unwrap()], allow_http: true, ..GuardConfig::default() };
        let rules = OriginRules { profile: Some(PushProfile::NeuralPost), ..OriginRules::default() };
        let origins = HashMap::from([("https://a.example:443".to_owned(), rules)]);
        let targets = GuardedTargets::new(Guard::new(config, &[]).unwrap(), Arc::new(origins), Challenge::Off);
        let target = targets.judge("https://a.example/hook").unwrap();
        assert_eq!((&*target.origin, target.profile), ("https://a.example:443", Some(PushProfile::NeuralPost)));
        assert_eq!(&*targets.judge("http://127.0.0.1:8099/x").unwrap().origin, "http://127.0.0.1:8099");
        // Where a name leads is seen when it is called.
        assert_eq!(&*targets.judge("http://a.example/").unwrap().origin, "http://a.example:80");
        for refused in ["https://10.0.0.1/", "http://10.0.0.1/", "https://u@a.example/", "ftp://a.example/", "https://[::1]/"] {
            targets.judge(refused).unwrap_err();
        }
    }

    #[test]
    fn a_secret_to_sign_with_has_to_be_one_and_other_schemes_are_not_ours_to_judge() {
        let targets = GuardedTargets::new(Guard::new(GuardConfig::default(), &[]).unwrap(), Arc::default(), Challenge::Off);
        let good = Some("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
        assert!(targets.judge_scheme("StandardWebhooks", good).is_ok() && targets.judge_scheme("hmac-sha256", good).is_ok());
        assert!(targets.judge_scheme("StandardWebhooks", Some("secret")).is_err());
        assert!(targets.judge_scheme("StandardWebhooks", None).is_err());
        assert!(targets.judge_scheme("Custom", Some("anything")).is_ok() && targets.judge_scheme("Bearer", None).is_ok());
    }
}
