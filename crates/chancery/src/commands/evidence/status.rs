//! `chancery evidence status`: how the record of the node stands, after going through all of it.

use super::super::node_args::NodeArgs;
use super::super::{Failure, Shared, nearby, show};

#[derive(clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    node: NodeArgs,
}

impl Status {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let answer = nearby::admin(shared, &self.node)?.evidence().await?;
        if shared.json {
            show::print_json(&answer.to_string());
            return Ok(());
        }
        let record = &answer["record"];
        let number = |name: &str| record[name].as_u64().unwrap_or_default();
        let rows = [
            ["entries", &(number("end") - number("first")).to_string()],
            ["first kept", &number("first").to_string()],
            ["signed up to", &number("signed").to_string()],
            ["checkpoints", &number("checkpoints").to_string()],
            ["sealed segments", &number("sealed_segments").to_string()],
            ["signed last", &show::text(&answer["signed_at"])],
            ["by key", &show::text(&answer["key"])],
            ["newest hash", &show::text(&record["hash"])],
        ];
        let rows = rows.map(|row| row.map(|cell: &str| cell.to_owned())).to_vec();
        show::print(&format!("No fault was found.\n\n{}", show::columns(rows)));
        Ok(())
    }
}
