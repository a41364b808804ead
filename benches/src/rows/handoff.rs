//! Memory handed over by its witness, beside the same vectors inside the message: from the request to a task that is done with them.

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde_json::{Value, json};

use super::gateway::program;
use super::identity::line;
use super::{Match, Row};
use crate::report::{MeasuredRow, Pair, Unit, median};
use crate::request;
use crate::server::Server;

const DIM: u32 = 128;
/// As much as the issue of a handoff may take of a request, whatever it stands for.
const MOST_BODY: usize = 2048;
/// What is taken inline here; 4 MiB unless the operator says otherwise.
const MOST_INLINE: usize = 100 << 20;
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Those of a million take seconds each.
const MOST_ROUNDS: usize = 3;
const CONFIG: &str = "
[agents.recall]
run = 'recall'
[agents.echo]
run = 'echo'
[limits]
task_bytes = 1000000000
";

/// A receiver that can be started again with nothing but its tier and its keys.
struct HandoffNodes<'a> {
    this: &'a Match<'a>,
    program: PathBuf,
    folder: PathBuf,
}

impl HandoffNodes<'_> {
    fn start(&self) -> Result<Server> {
        let mut command = self.this.ground.on_server_core(&self.program);
        command.args(["serve", "--config"]).arg(self.folder.join("chancery.toml")).arg("--data").arg(self.folder.join("data"));
        Server::start(command, self.folder.join("log"))
    }

    fn say(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--json", "--data"]).arg(self.folder.join("data")).stdin(Stdio::null());
        let output = command.output().context("the command")?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

pub(super) fn measure(row: &Row, count: u64, this: &Match<'_>) -> Result<MeasuredRow> {
    let folder = this.ground.scratch().join(row.name);
    fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
    let tier = folder.join("tier");
    let config = format!("{CONFIG}body_bytes = {MOST_INLINE}\n[memory]\ntier = '{}'\n", tier.display());
    fs::write(folder.join("chancery.toml"), config)?;
    let nodes = HandoffNodes { this, program: program(this)?, folder };
    let vectors = nodes.folder.join("vectors.ruvec");
    write(&vectors, count)?;
    let server = nodes.start()?;
    let reference = by_reference(&nodes, &vectors)?;
    ensure!(serde_json::to_vec(&reference)?.len() <= MOST_BODY, "a handoff of more than {MOST_BODY} bytes");
    let inline = json!([{ "raw": STANDARD.encode(fs::read(&vectors)?), "mediaType": "application/octet-stream" }]);
    fs::remove_file(vectors)?;
    let inline_bytes = inline.to_string().len();
    let mut took_inline = Vec::new();
    if inline_bytes < MOST_INLINE {
        for _ in 0..rounds(this) {
            took_inline.push(handed(&server, "/agents/echo", &inline)?);
        }
    } else {
        let refused = handed(&server, "/agents/echo", &json!([{ "raw": "A".repeat(MOST_INLINE) }]));
        ensure!(refused.is_err(), "more than body_bytes was taken");
    }
    drop((server, inline));
    let (mut took_first, mut took_again) = (Vec::new(), Vec::new());
    for _ in 0..rounds(this) {
        let server = nodes.start()?;
        took_first.push(handed(&server, "/agents/recall", &reference)?);
        took_again.push(handed(&server, "/agents/recall", &reference)?);
    }
    let [inline, first, again] = [took_inline, took_first, took_again].map(|times| median(times.into_iter()));
    let beside = match inline.is_nan() {
        true => format!("inline is refused: {inline_bytes} bytes, and limits.body_bytes is {MOST_INLINE} here"),
        false => format!("{inline_bytes} bytes inline"),
    };
    let note = format!(
        "{} bytes by reference, read, checked and ready to be searched; {again:.0} µs where it was before; {beside}",
        reference.to_string().len()
    );
    fs::remove_dir_all(tier)?;
    Ok(line(row, Unit::Microseconds, Pair { yardstick: inline, chancery: first }, first / inline, None, note))
}

fn rounds(this: &Match<'_>) -> usize {
    this.effort.rounds.min(MOST_ROUNDS)
}

/// Puts the vectors into the tier and answers the parts of the message that hands them over.
fn by_reference(nodes: &HandoffNodes<'_>, vectors: &Path) -> Result<Value> {
    let patience = Instant::now() + READY_WITHIN;
    // It takes connections before it has written down where it is.
    while let Err(fault) = nodes.say(&["memory", "show"]) {
        ensure!(Instant::now() < patience, "{fault}");
        sleep(Duration::from_millis(50));
    }
    let published = nodes.say(&["memory", "publish", vectors.to_str().context("a path that is text")?])?;
    let keys = nodes.say(&["keys", "show"])?;
    let of_recall = |key: &&Value| key["owner"] == "recall" && key["agent_id"].is_string();
    let key = keys["keys"].as_array().and_then(|keys| keys.iter().find(of_recall)).context("an agent without a key")?;
    let witness = published["witness"].as_str().context("no witness")?;
    let grant = nodes.say(&["memory", "grant", witness, "--to", key["agent_id"].as_str().unwrap_or_default()])?;
    Ok(json!([{
        "data": { "kind": "rulake_witness", "witness": witness, "data_ref": published["data_ref"], "capabilities": ["read"] },
        "metadata": { "ruvector": {
            "artifact_kind": "rulake_witness", "artifact_kind_version": "1", "rvlake_witness": witness, "grant": grant["id"],
        } },
    }]))
}

/// Microseconds until the agent's task is complete.
fn handed(server: &Server, path: &str, parts: &Value) -> Result<f64> {
    let params = json!({ "message": { "messageId": uuid::Uuid::now_v7().to_string(), "role": "ROLE_USER", "parts": parts } });
    let call = request::call(server.address(), path, "SendMessage", &params);
    let mut stream = TcpStream::connect(server.address())?;
    stream.set_nodelay(true)?;
    let start = Instant::now();
    // Refused in the middle of it, the rest cannot be written.
    let written = stream.write_all(&call);
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    while memmem::find(&answer, b"TASK_STATE_COMPLETED").is_none() {
        let read = stream.read(&mut piece).unwrap_or(0);
        ensure!(read > 0 && !answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..read]);
        ensure!(memmem::find(&answer, b"\"error\"").is_none(), "{}", String::from_utf8_lossy(&answer));
    }
    written?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// Vectors that are the same for the same count.
fn write(path: &Path, count: u64) -> Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ count;
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&chancery_memory::VectorShape { count, dim: DIM }.header())?;
    for id in 0..count {
        file.write_all(&id.to_le_bytes())?;
        for _ in 0..DIM {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let number = (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
            file.write_all(&number.to_le_bytes())?;
        }
    }
    file.flush().context("the vectors")
}
