//! `chancery bill` at a running node: for people, for programs and for spreadsheets, before and after a restart.

use serde_json::{Value, json};

use crate::support::delegating_node::{AGENTS, DelegatingNode};

fn usd(line: &Value) -> i64 {
    let text = line["usd"].as_str().expect("money is text");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    whole.parse::<i64>().expect("a number") * 1_000_000 + format!("{part:0<6}").parse::<i64>().expect("a number")
}

#[test]
fn what_each_spent_is_shown_and_adds_up_and_survives_a_restart() {
    let node = DelegatingNode::new(AGENTS);
    assert!(node.run(&["bill", "--since", "1h"]).stderr.contains("nothing was settled since"));
    for (caller, agent, text) in [
        ("user", "planner", "complete one"),
        ("user", "writer", "complete two"),
        ("planner-bot", "writer", "complete three"),
        ("user", "research", "fail four"),
    ] {
        let ran = node.send_as(caller, &["--agent", agent, text]);
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    }
    let shown = node.text(&["bill", "--since", "1h"]);
    let expected = "AGENT     USD   TOKENS  TASKS\nwriter    0.06  0       2\nresearch  0.02  0       1\nplanner   0.01  0       1\n\
                    total     0.09  0       4\n";
    assert_eq!(shown, expected);
    let node = node.restarted(AGENTS);
    assert_eq!(node.text(&["bill", "--since", "1h", "--by", "agent"]), expected, "the same after a restart");

    for by in ["root", "caller", "agent", "skill", "tenant"] {
        let bill = node.json(&["bill", "--since", "1h", "--by", by]);
        let lines = bill["lines"].as_array().expect("lines");
        assert_eq!(lines.iter().map(usd).sum::<i64>(), 90_000, "by {by}: {bill}");
        assert_eq!((&bill["total"]["usd"], &bill["by"]), (&json!("0.09"), &json!(by)));
        assert!(lines.iter().all(|line| line.get(by).is_some()), "{bill}");
    }
    let callers = node.json(&["bill", "--since", "1h", "--by", "caller"]);
    assert_eq!(callers["lines"][0]["caller"].as_str().map(|name| name.ends_with("/user")), Some(true), "{callers}");
    assert_eq!(usd(&callers["lines"][0]), 60_000);

    let csv = node.text(&["bill", "--since", "1h", "--csv"]);
    assert_eq!(csv, "agent,usd,tokens,tasks\r\nwriter,0.06,0,2\r\nresearch,0.02,0,1\r\nplanner,0.01,0,1\r\n");
    assert_eq!(node.run(&["bill", "--since", "0s"]).stdout, "");
}

#[test]
fn a_bill_that_makes_no_sense_is_refused_with_the_reason() {
    let node = DelegatingNode::new(AGENTS);
    for (arguments, words) in [
        (&["bill"][..], "--since"),
        (&["bill", "--since", "10"], "is not a number with s, m, h or d"),
        (&["bill", "--since", "1h", "--by", "weather"], "possible values: root, caller, agent, skill, tenant"),
        (&["--json", "bill", "--since", "1h", "--csv"], "choose one"),
    ] {
        let ran = node.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
    let far = node.run(&["bill", "--since", "3650d"]);
    assert!(far.code == Some(0) && far.stderr.contains("max_cost_age_hours"), "{}", far.stderr);
    assert!(node.text(&["bill", "--help"]).contains("chancery bill --since 30d --by tenant --csv > bill.csv"));
}
