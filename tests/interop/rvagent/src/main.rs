//! Drives a server with the `rvagent-a2a` client and types: `interop-rvagent BASE_URL`, one line of JSON per check.

mod checks;
mod sse;

use std::time::Duration;

use serde_json::json;

/// Long enough for a loaded machine; a check that hangs must still end.
const PER_CHECK: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<(), checks::Failure> {
    let base = std::env::args().nth(1).ok_or("usage: interop-rvagent BASE_URL")?;
    let agent = checks::Agent::new(base)?;
    for operation in checks::OPERATIONS {
        let outcome = tokio::time::timeout(PER_CHECK, checks::run(&agent, operation)).await;
        let detail = match outcome {
            Ok(Ok(())) => String::new(),
            Ok(Err(failure)) => failure.to_string(),
            Err(_) => format!("no end after {} s", PER_CHECK.as_secs()),
        };
        let row = json!({
            "sdk": "rvagent-a2a", "sdk_version": "0.1.0", "protocol": "original", "binding": "JSONRPC",
            "operation": operation, "ok": detail.is_empty(), "detail": detail,
        });
        println!("{row}");
    }
    Ok(())
}
