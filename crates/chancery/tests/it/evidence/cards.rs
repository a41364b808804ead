//! Cards of agents elsewhere are in the record when they were fetched, whatever was judged of them, and not when they were remembered.

use chancery_evidence::bundle::verify;
use chancery_evidence::record::types;

use super::record::evidence;
use crate::support::patience::eventually;
use crate::support::server::{Home, Server, Setup};

/// The agent at the root of its node.
const FIRST: &str = "[agents.tester]\nrun = 'conformance'\n";
/// Somebody else at the root, and the agent only at a path of its own: its card names another address.
const SECOND: &str = "[agents.other]\nrun = 'echo'\n[agents.tester]\nrun = 'conformance'\n";

fn front(home: &Home, url: &str) -> Server {
    let reach = "[outbound]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n";
    let agent = format!("[agents.far]\nurl = '{url}/agents/tester'\npin = true\n");
    Setup::in_home(home).config(&format!("{reach}{agent}")).start()
}

fn far(home: &Home, url: &str, config: &str) -> Server {
    Setup::at(home, url.trim_start_matches("http://")).config(config).start()
}

/// The digests of the cards in the record, in their order.
fn cards(home: &Home) -> Vec<String> {
    let file = home.path().join("all.tar.gz");
    if evidence(home, &["export", "-o", &file.to_string_lossy()]).code != Some(0) {
        return Vec::new();
    }
    let (checked, _) = verify(&std::fs::read(&file).expect("a bundle"), &[]).expect("a sound bundle");
    let cards = checked.events.iter().filter(|event| event["type"] == types::CARD);
    cards.map(|card| card["data"]["sha256"].as_str().expect("a digest").to_owned()).collect()
}

#[test]
fn a_card_is_in_the_record_if_it_was_shown_whether_it_counts_waits_or_is_refused() {
    let (home, far_home, other_home) = (Home::new(), Home::new(), Home::new());
    let agent = Setup::in_home(&far_home).config(FIRST).start();
    let url = agent.url().to_owned();
    let recorded = |count| eventually("the card is recorded", || Some(cards(&home)).filter(|cards| cards.len() >= count));
    let node = front(&home, &url);
    let first = recorded(1);
    node.terminate();

    // Nobody is there: the approved card counts, and is not seen.
    agent.terminate();
    let node = front(&home, &url);
    assert_eq!(cards(&home), first);
    node.terminate();

    let agent = far(&far_home, &url, SECOND);
    let node = front(&home, &url);
    let waits = recorded(2);
    assert!(node.log().contains("promises something else"), "{}", node.log());
    node.terminate();

    agent.terminate();
    let _impostor = far(&other_home, &url, SECOND);
    let node = front(&home, &url);
    let refused = recorded(3);
    assert!(node.log().contains("rejected the card of an agent"), "{}", node.log());
    assert_eq!((&refused[..1], &refused[..2]), (&first[..], &waits[..]), "nothing was recorded that was not shown");
    assert!(refused.len() == 3 && refused[0] != refused[1] && refused[1] != refused[2], "{refused:?}");
}
