//! The flag that names the database of a node, in place of `store.url` in its config file.

use chancery::config::StoreUrl;

use super::Failure;

#[derive(clap::Args)]
pub(super) struct StoreFlag {
    /// Keep tasks in this PostgreSQL database, as in postgres://USER@HOST/DATABASE; overrides `store.url` of the file. Set a password
    /// with `store.password_env` or `store.password_file`, because other users of this machine can read arguments
    #[arg(id = "store_url", long = "store", value_name = "URL", env = "CHANCERY_STORE", hide_env_values = true)]
    url: Option<String>,
}

impl StoreFlag {
    /// Reads the URL, which a fault does not repeat: it may hold a password.
    pub(super) fn take(&mut self) -> Result<Option<StoreUrl>, Failure> {
        let read = self.url.take().map(StoreUrl::try_from).transpose();
        read.map_err(|fault| Failure::Usage(format!("--store {fault}")))
    }
}
