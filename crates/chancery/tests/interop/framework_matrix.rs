//! The servers and clients that agent frameworks ship: whatever works without the gateway works through it, with the same answer.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::frameworks::{self, CHOICE, FRAMEWORKS, Framework, SDK_PROBES};
use crate::machine::MACHINE;
use crate::matrix::{self, Attempt, Comparison, Tally};
use crate::server::Server;
use crate::toolbox::{Toolbox, repository};
use crate::{say, snippets};

/// Servers that are tried at once. More would have the machine's load decide what times out.
const AT_ONCE: usize = 2;

/// A variant of a framework's server, with everything that calls it installed.
struct Trial {
    framework: &'static Framework,
    variant: &'static str,
    server: Command,
    /// The probes of the official SDKs, then the framework's own client.
    clients: Vec<Command>,
}

#[test]
fn what_works_bare_with_an_agent_framework_works_through_the_gateway() {
    let _alone = MACHINE.blocking_write();
    let tools = Toolbox::new();
    let choice = std::env::var(CHOICE).ok();
    let chosen = frameworks::chosen(choice.as_deref()).expect("only frameworks that exist are chosen");
    let mut trials = Vec::new();
    for framework in chosen {
        trials.extend(prepare(&tools, framework).unwrap_or_else(|missing| panic!("{missing}")));
    }

    let next = AtomicUsize::new(0);
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let comparison = compare(trial, &tools);
                    say(&comparison.render());
                    seen.lock().expect("nobody panics with it").push(comparison);
                }
            });
        }
    });
    let seen = seen.into_inner().expect("nobody panicked with it");

    let all = |of: fn(&Comparison) -> Vec<String>| seen.iter().flat_map(of).collect::<Vec<_>>();
    for framework in trials.iter().map(|trial| trial.framework.name).collect::<BTreeSet<_>>() {
        let framework = FRAMEWORKS.iter().find(|known| known.name == framework).expect("it was chosen from here");
        for (operation, reason) in framework.left_out {
            say(&format!("not tried: {}, {operation}: {reason}\n", framework.name));
        }
    }
    say(&format!("\nfail bare, not required:\n{}\n", all(Comparison::bare_failures).join("\n")));
    say(&format!("\nslower through the gateway:\n{}\n", all(Comparison::slower).join("\n")));
    let faults = all(Comparison::faults);
    say(&format!("\nwork bare and not through:\n{}\n", faults.join("\n")));
    let Tally { pairs, required, carried, gained } = seen.iter().map(Comparison::count).sum();
    say(&format!("{pairs} pairs; {required} work bare, {carried} of them through; {gained} work only through\n"));
    assert!(faults.is_empty(), "{} pairs work bare and not through:\n{}", faults.len(), faults.join("\n"));
}

fn prepare(tools: &Toolbox, framework: &'static Framework) -> Result<Vec<Trial>, String> {
    let mut trials = Vec::new();
    for variant in framework.variants {
        let mut clients = Vec::new();
        for probe in SDK_PROBES {
            clients.push(tools.python(probe, "probe.py")?);
        }
        clients.push(framework.client(tools)?);
        trials.push(Trial { framework, variant, server: framework.server(tools)?, clients });
    }
    Ok(trials)
}

/// Runs every client against the agent itself, and through a gateway for each spelling of the agent's address.
fn compare(trial: &Trial, tools: &Toolbox) -> Comparison {
    let name = format!("{}-{}", trial.framework.name, trial.variant);
    let port = free_port().to_string();
    let agent = Server::start(again(&trial.server).args([&port, trial.variant]), &tools.log(&name));
    let listed = spelled_as_in_the_card(&agent.base, trial);
    let mut comparison = Comparison { agent: name.clone(), bare: attempts(trial, &listed), ..Comparison::default() };
    // The gateway is called by the name that the agent is called by, because its card has to follow that too.
    let localhost = agent.base.replace("127.0.0.1", "localhost");
    let other = if listed == localhost { agent.base.clone() } else { localhost };
    for address in [listed, other] {
        let gateway = Server::serving(&["--agent", &address], &tools.log(&format!("{name}-gateway")));
        let host = if address.contains("//localhost:") { "localhost" } else { "127.0.0.1" };
        let through = attempts(trial, &gateway.base.replace("127.0.0.1", host));
        comparison.through.push((address, through));
    }
    comparison
}

/// The agent's address with the host that its own card has, found by the client that reads cards of both versions.
fn spelled_as_in_the_card(base: &str, trial: &Trial) -> String {
    let rest = matrix::OPERATIONS.into_iter().filter(|operation| *operation != "card");
    let rows = call(again(&trial.clients[0]).arg(base).args(rest));
    let card = rows.first().filter(|row| row.ok).expect("the official client reads the card");
    let host = card.detail.strip_prefix("http://").and_then(|rest| rest.split(':').next());
    base.replace("127.0.0.1", host.expect("the card has an address with a port"))
}

fn attempts(trial: &Trial, url: &str) -> Vec<Attempt> {
    let left_out = || trial.framework.left_out.iter().map(|(operation, _)| operation);
    trial.clients.iter().flat_map(|client| call(again(client).arg(url).args(left_out()))).collect()
}

fn call(client: &mut Command) -> Vec<Attempt> {
    let output = client.output().expect("a prepared client starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        say(&format!("{client:?} ended with {}: {}\n", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    printed.lines().map(|line| serde_json::from_str(line).expect("a client prints rows")).collect()
}

/// The same program, to be started once more.
fn again(command: &Command) -> Command {
    let mut again = Command::new(command.get_program());
    again.args(command.get_args());
    again
}

/// A port that was free a moment ago: the frameworks write theirs into the card before they listen.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}

#[test]
fn every_python_block_of_the_readme_and_of_the_framework_guide_is_code_that_the_matrix_runs() {
    let folder = repository().join("tests/interop/frameworks");
    let guide = fs::read_to_string(repository().join("docs/frameworks.md")).expect("the guide is there");
    let readme = fs::read_to_string(repository().join("README.md")).expect("the README is there");
    assert!(!snippets::blocks(&readme).is_empty(), "the README shows an SDK client");
    let mut shown = BTreeSet::new();
    for (source, block) in snippets::blocks(&guide).into_iter().chain(snippets::blocks(&readme)) {
        let source = source.unwrap_or_else(|| panic!("no comment says which file this block is from:\n{block}"));
        let text = fs::read_to_string(folder.join(source)).unwrap_or_else(|fault| panic!("{source}: {fault}"));
        assert_eq!(block, snippets::marked(&text), "the block is not what {source} runs");
        shown.insert(source.to_owned());
    }
    for framework in FRAMEWORKS {
        for script in ["server.py", "client.py"] {
            let source = format!("{}/{script}", framework.name);
            let text = fs::read_to_string(folder.join(&source)).expect("every framework has both scripts");
            assert!(shown.contains(&source) || snippets::marked(&text).is_empty(), "the guide does not show {source}");
        }
    }
}

#[test]
fn the_versions_in_the_documents_are_the_versions_that_are_installed() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).expect("the file is there");
    let (guide, readme) = (read("docs/frameworks.md"), read("README.md"));
    for framework in FRAMEWORKS {
        let pins = read(&format!("tests/interop/frameworks/{}/requirements.txt", framework.name));
        for package in framework.packages {
            let (name, version) = package.split_once("==").expect("a package is pinned");
            let pinned = |line: &str| line.split('[').next() == Some(name) && line.ends_with(&format!("=={version}"));
            assert!(pins.lines().any(|line| line == *package || pinned(line)), "{package} is not what is installed");
            let words = format!("{name} {version}");
            assert!(guide.contains(&words), "docs/frameworks.md does not have {words}");
            assert!(readme.contains(&words), "README.md does not have {words}");
        }
    }
}

#[test]
fn a_pair_that_fails_or_answers_otherwise_through_the_gateway_is_a_fault() {
    let attempt = |operation: &str, ok, content: &str, parts| Attempt {
        client: "client".into(),
        operation: operation.into(),
        ok,
        content: content.into(),
        parts,
        detail: String::new(),
        seconds: 0.0,
    };
    let bare = vec![attempt("send", true, "hello", 1), attempt("stream", false, "", 0)];
    let through = |attempts: &[Attempt]| Comparison {
        agent: "agent".into(),
        bare: bare.clone(),
        through: vec![("localhost".into(), attempts.to_vec())],
    };
    assert_eq!(through(&bare).faults(), Vec::<String>::new(), "what fails bare may fail through");
    for worse in [attempt("send", false, "", 0), attempt("send", true, "hel", 1), attempt("send", true, "hello", 2)] {
        assert_eq!(through(std::slice::from_ref(&worse)).faults().len(), 1, "{worse:?}");
    }
    assert_eq!(through(&[]).faults().len(), 1, "a missing row is a failed one");
    let better = through(&[bare[0].clone(), attempt("stream", true, "hello", 0)]);
    assert_eq!(better.count(), Tally { pairs: 2, required: 1, carried: 1, gained: 1 });
    assert!(better.render().contains("no -> ok"), "{}", better.render());
}

#[test]
fn a_framework_that_nobody_has_is_not_a_run_of_nothing() {
    assert!(frameworks::chosen(Some("google_adk,no-such")).is_err());
    assert_eq!(frameworks::chosen(Some("all")).map(|all| all.len()), Ok(FRAMEWORKS.len()));
    assert_eq!(frameworks::chosen(Some("crewai")).map(|all| all[0].name), Ok("crewai"));
    let ci: Vec<_> = frameworks::chosen(None).expect("without a choice").iter().map(|framework| framework.name).collect();
    assert_eq!(ci, ["google_adk", "pydantic_ai", "beeai"]);
}
