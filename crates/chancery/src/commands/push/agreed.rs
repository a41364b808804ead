//! What a receiver agreed on with its senders, from arguments. Secrets come from files and the environment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chancery_identity::webhook::{HmacSecret, PushKeys, public_key_from_whpk};
use chancery_identity::{Jwk, Jwks, PublicKey};
use chancery_outbound::{ConnectionTerms, TypedUrl};
use chancery_receiver::{Builder, Receiver};
use secrecy::{ExposeSecret as _, SecretString};

use super::super::Failure;

const FETCH_WITHIN: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
#[command(next_help_heading = "Required proofs")]
pub(super) struct AgreedSecretsCommand {
    /// The URL of the receiver, exactly as it was registered; notifications for another URL are rejected
    #[arg(long, value_name = "URL")]
    url: Vec<String>,
    /// The environment variable with a shared secret (whsec_…)
    #[arg(long, value_name = "VARIABLE")]
    secret_env: Vec<String>,
    /// The file with a shared secret (whsec_…)
    #[arg(long, value_name = "FILE")]
    secret_file: Vec<PathBuf>,
    /// The sender's public key (whpk_…)
    #[arg(long, value_name = "KEY")]
    public_key: Vec<String>,
    /// The sender's public keys: a node that publishes them, or a file with a JWKS, a JWK or PEM
    #[arg(long, value_name = "URL|FILE")]
    keys: Option<String>,
    /// Require a token (JWT) of the sender too
    #[arg(long)]
    jwt: bool,
    /// The environment variable with the registration's token
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// The file with the registration's token
    #[arg(long, value_name = "FILE", conflicts_with = "token_env")]
    token_file: Option<PathBuf>,
    /// The environment variable with the credentials behind `Authorization: Bearer`
    #[arg(long, value_name = "VARIABLE")]
    bearer_env: Option<String>,
    /// The environment variable with the secret of a signature over the body alone
    #[arg(long, value_name = "VARIABLE")]
    body_secret_env: Option<String>,
    /// The environment variable with the secret of a NeuralPost signature
    #[arg(long, value_name = "VARIABLE")]
    neuralpost_env: Option<String>,
}

impl AgreedSecretsCommand {
    /// Whether anything has to be shown at all.
    pub(super) fn is_something(&self) -> bool {
        let lists = self.secret_env.len() + self.secret_file.len() + self.public_key.len();
        let named = [&self.keys, &self.token_env, &self.bearer_env, &self.body_secret_env, &self.neuralpost_env];
        lists > 0 || self.jwt || self.token_file.is_some() || named.iter().any(|one| one.is_some())
    }

    /// The node whose keys are to be fetched again now and then.
    pub(super) fn publisher(&self) -> Option<&str> {
        self.keys.as_deref().filter(|from| is_url(from))
    }

    pub(super) async fn builder(&self) -> Result<Builder, Failure> {
        let mut builder = self.url.iter().fold(Receiver::builder(), |builder, url| builder.url(url));
        for name in &self.secret_env {
            builder = builder.secret(hmac(&variable(name)?, name)?);
        }
        for file in &self.secret_file {
            builder = builder.secret(hmac(&read(file)?, &file.display().to_string())?);
        }
        let keys = self.public_keys().await?;
        if !keys.is_empty() {
            builder = builder.keys(PushKeys::new(keys));
        }
        if self.jwt {
            builder = builder.jwt(None);
        }
        if let Some(name) = &self.token_env {
            builder = builder.token(variable(name)?);
        }
        if let Some(file) = &self.token_file {
            builder = builder.token(read(file)?);
        }
        if let Some(name) = &self.bearer_env {
            builder = builder.credentials("Bearer", variable(name)?);
        }
        if let Some(name) = &self.body_secret_env {
            builder = builder.body_signature(variable(name)?);
        }
        if let Some(name) = &self.neuralpost_env {
            builder = builder.neuralpost(variable(name)?);
        }
        Ok(builder)
    }

    /// All the keys there are by now.
    pub(super) async fn public_keys(&self) -> Result<Vec<PublicKey>, Failure> {
        let given = self
            .public_key
            .iter()
            .map(|text| public_key_from_whpk(text).map_err(|fault| Failure::Usage(format!("--public-key: {fault}"))));
        let mut keys = given.collect::<Result<Vec<_>, _>>()?;
        if let Some(from) = &self.keys {
            let published = published(from).await?;
            let before = keys.len();
            for algorithm in [chancery_identity::Algorithm::EdDsa, chancery_identity::Algorithm::Es256] {
                keys.extend(published.candidates(chancery_identity::KeyUse::Push, algorithm, None));
            }
            if keys.len() == before {
                return Err(Failure::Usage(format!("{from} has no key for notifications")));
            }
        }
        Ok(keys)
    }
}

async fn published(from: &str) -> Result<Jwks, Failure> {
    let unreadable = |fault: String| Failure::Usage(format!("{from} is no list of keys: {fault}"));
    let text = if is_url(from) {
        TypedUrl::new(from, ConnectionTerms::default())?.fetch_keys(FETCH_WITHIN).await?
    } else {
        std::fs::read_to_string(from).map_err(|fault| unreadable(fault.to_string()))?
    };
    if text.contains("-----BEGIN") {
        let key = PublicKey::from_pem(&text).map_err(|fault| unreadable(fault.to_string()))?;
        return Ok(Jwks { keys: vec![Jwk::of(&key, None)] });
    }
    let set = serde_json::from_str::<Jwks>(&text).or_else(|_| serde_json::from_str(&text).map(|key| Jwks { keys: vec![key] }));
    set.map_err(|_| unreadable("write a JWK, a JWKS, or PEM with PUBLIC KEY".to_owned()))
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

fn hmac(text: &SecretString, from: &str) -> Result<HmacSecret, Failure> {
    HmacSecret::parse(text.expose_secret()).map_err(|fault| Failure::Usage(format!("{from}: {fault}")))
}

fn variable(name: &str) -> Result<SecretString, Failure> {
    let value = std::env::var(name).map_err(|_| Failure::Usage(format!("the environment variable {name} is not set")))?;
    trimmed(value, name)
}

fn read(file: &Path) -> Result<SecretString, Failure> {
    let name = file.display().to_string();
    trimmed(std::fs::read_to_string(file).map_err(|fault| Failure::Usage(format!("{name}: {fault}")))?, &name)
}

fn trimmed(text: String, from: &str) -> Result<SecretString, Failure> {
    match text.trim() {
        "" => Err(Failure::Usage(format!("{from} is empty"))),
        text => Ok(text.into()),
    }
}
