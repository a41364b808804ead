//! Drives a server with the official Rust client: `interop-rust BASE_URL`, every binding, one line of JSON per check.

mod agent;
mod checks;

use std::time::Duration;

use serde_json::json;

/// Long enough for a loaded machine; a check that hangs must still end.
const PER_CHECK: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<(), agent::Failure> {
    let base = std::env::args().nth(1).ok_or("usage: interop-rust BASE_URL")?;
    for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let agent = agent::Agent::new(&base, binding).await?;
        for operation in checks::OPERATIONS {
            let detail = match tokio::time::timeout(PER_CHECK, checks::run(&agent, operation)).await {
                Ok(Ok(())) => String::new(),
                Ok(Err(failure)) => failure.to_string(),
                Err(_) => format!("no end after {} s", PER_CHECK.as_secs()),
            };
            let row = json!({
                "sdk": "rust", "sdk_version": "0.2.9", "protocol": "1.0", "binding": binding,
                "operation": operation, "ok": detail.is_empty(), "detail": detail,
            });
            println!("{row}");
        }
    }
    Ok(())
}
