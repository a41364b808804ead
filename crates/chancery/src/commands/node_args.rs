//! Which node an operator's command is for: the one in the data folder, or the one at a URL.

use std::path::PathBuf;

use chancery_outbound::{Admin, ConnectionTerms, TrustedRoots, TypedUrl};
use secrecy::ExposeSecret as _;

use super::credentials::{OwnCertificate, certificates, read_secret};
use super::{Failure, nearby};

/// Flags of every command that uses the admin API.
#[derive(clap::Args)]
#[command(next_help_heading = "Node")]
pub(super) struct NodeArgs {
    /// The node at this URL, in place of the one in the data folder; needs --token-file
    #[arg(id = "node_url", long = "url", value_name = "URL", global = true)]
    url: Option<String>,
    /// The file with the admin token of the node at --url: a copy of admin.token in its data folder
    #[arg(id = "node_token_file", long = "token-file", value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
    /// Trust certificates of these roots (PEM) too for --url
    #[arg(id = "node_ca_file", long = "ca-file", value_name = "FILE", global = true)]
    ca_file: Option<PathBuf>,
    /// Send the token to --url over plain http although it is on another machine
    #[arg(id = "node_insecure_http", long = "insecure-http", global = true)]
    insecure_http: bool,
    #[command(flatten)]
    pub(super) own: OwnCertificate,
}

impl NodeArgs {
    /// The node at the URL that was typed. None if there is no URL.
    pub(super) fn at_url(&self) -> Result<Option<Admin>, Failure> {
        let Some(url) = &self.url else {
            if self.token_file.is_some() || self.ca_file.is_some() || self.insecure_http {
                let message = "--token-file, --ca-file and --insecure-http are for a node at --url; say --url URL too";
                return Err(Failure::Usage(message.to_owned()));
            }
            return Ok(None);
        };
        let Some(file) = &self.token_file else {
            let message =
                "--url needs the admin token of that node: say --token-file FILE, with a copy of admin.token in its data folder";
            return Err(Failure::Usage(message.to_owned()));
        };
        let token = read_secret(file, "the admin token")?;
        let token = token.expose_secret().trim();
        if token.is_empty() {
            return Err(Failure::Usage(format!("{} holds no token", file.display())));
        }
        let trust = match &self.ca_file {
            Some(file) => TrustedRoots::Also(certificates(file)?),
            None => TrustedRoots::System,
        };
        let terms = ConnectionTerms { certificate: self.own.load()?, trust, ..ConnectionTerms::default() };
        let typed = TypedUrl::new(url, terms)?;
        if !matches!(typed.url().scheme(), "http" | "https") {
            return Err(Failure::Usage("--url: the admin API is at an http or https URL".to_owned()));
        }
        if typed.is_plain() && !typed.is_loopback() && !self.insecure_http {
            let message = "the token would be sent to another machine over unencrypted http; use https, or --insecure-http";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(Some(Admin::new(typed, nearby::LOOK_UP_WITHIN, token)))
    }
}
