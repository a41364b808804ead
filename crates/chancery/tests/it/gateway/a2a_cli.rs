//! The ADR's `a2a_cli`: agents are found, added and sent to from the command line, by URL and by name, and the help says how.

use crate::operating::cli::{Ran, run};
use crate::support::server::{Home, Setup};

#[track_caller]
fn said(ran: &Ran, text: &str) {
    assert_eq!((ran.code, ran.stdout.trim_end()), (Some(0), text), "{}", ran.stderr);
}

#[test]
fn a2a_cli() {
    let (home, elsewhere) = (Home::new(), Home::new());
    let back = Setup::in_home(&elsewhere).args(["--agent", "conformance"]).start();
    let _node = Setup::in_home(&home).args(["--agent", "echo", "--agent", "conformance"]).start();

    let card = run(&home, ["discover", back.url()]);
    assert_eq!(card.code, Some(0), "{}", card.stderr);
    assert!(card.stdout.contains("Conformance"), "{}", card.stdout);
    assert_eq!(run(&home, ["card", back.url()]).stdout, card.stdout, "two names for one thing");

    said(&run(&home, ["agents", "add", back.url(), "--name", "far"]), "/agents/far");
    for command in ["send", "send-task"] {
        said(&run(&home, [command, "conformance", "complete from the config"]), "from the config");
        said(&run(&home, [command, "far", "complete from afar"]), "from afar");
        said(&run(&home, [command, back.url(), "complete without a node"]), "without a node");
        said(&run(&home, [command, "just one word"]), "just one word");
    }
    let data = home.data();
    let shown = Ran::of(elsewhere.command().arg("--data").arg(&data).args(["send", "far", "complete by the folder"]));
    said(&shown, "by the folder");
    said(
        &run(&home, ["send", "far", "--stream", "stream 2 1"]),
        run(&home, ["send", back.url(), "--stream", "stream 2 1"]).stdout.trim_end(),
    );

    let failed = run(&home, ["send", "far", "fail no luck"]);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert!(failed.stderr.contains("no luck"), "{}", failed.stderr);
    let nobody = run(&home, ["send", "nobody", "hello"]);
    assert_eq!(nobody.code, Some(1), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("no agent of this name"), "{}", nobody.stderr);
    assert_eq!(run(&home, ["send", "http://127.0.0.1:9", "hello"]).code, Some(3));
    assert_eq!(run(&home, ["discover", "http://127.0.0.1:9"]).code, Some(3));
    assert_eq!(run(&home, ["send", "far", "hello", "--agent", "conformance"]).code, Some(2));
    assert_eq!(run(&home, ["send"]).code, Some(2));

    let help = run(&home, ["--help"]).stdout;
    for taught in ["discover", "send-task", "chancery send NAME", "agents add URL"] {
        assert!(help.contains(taught), "{taught} is not in {help}");
    }
    let help = run(&home, ["send", "--help"]).stdout;
    assert!(help.contains("[URL|NAME]") && help.contains("chancery send https://agent.example.org"), "{help}");
}
