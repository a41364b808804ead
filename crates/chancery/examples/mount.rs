//! An agent of one's own in one's own axum app, with a store, streaming and every A2A version and binding.
#![allow(clippy::print_stdout, reason = "a program says where it is")]
use chancery::{Artifact, Finished, Node, Part, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait, new_card};

struct Greeter;

#[async_trait]
impl TaskRunner for Greeter {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let greeting = format!("Hello, {}!", turn.message.first_text().unwrap_or("stranger"));
        updates.artifact(Artifact::new("greeting", vec![Part::text(greeting)])).await?;
        Ok(updates.complete(None))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    println!("{url}");
    let node = Node::builder().agent("greeter", new_card("Greeter", "Greets you."), Greeter).memory().public_url(url);
    let app = axum::Router::new().route("/mine", axum::routing::get("my page")).merge(node.build().await?.router());
    Ok(axum::serve(listener, app).await?)
}
