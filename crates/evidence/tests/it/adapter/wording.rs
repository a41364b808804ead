//! The wording rule of the freezes: whatever is said about `discovery` and `handoff` speaks of visibility only.

/// Parts of words, so that no form of them slips through.
const NOT_SAID: [&str; 6] = ["valid", "verif", "trust", "succe", "authentic", "legitim"];

/// The part of the manual under one heading.
fn section<'a>(manual: &'a str, heading: &str) -> &'a str {
    let (_, after) = manual.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    after.split_once("\n## ").map_or(after, |(section, _)| section)
}

#[test]
fn nothing_said_about_discovery_and_handoff_goes_beyond_visibility() {
    let manual = include_str!("../../../docs/evidence.md");
    for (place, text) in [
        ("discovery.rs", include_str!("../../../src/adapter/discovery.rs")),
        ("handoff.rs", include_str!("../../../src/adapter/handoff.rs")),
        ("adapter/mod.rs", include_str!("../../../src/adapter/mod.rs")),
        ("packets.rs", include_str!("../../../src/packets.rs")),
        ("docs/evidence.md, discovery", section(manual, "\n## Discovery\n")),
        ("docs/evidence.md, handoff", section(manual, "\n## Handoff\n")),
    ] {
        let text = text.to_lowercase();
        for word in NOT_SAID {
            assert!(!text.contains(word), "{place} says {word}");
        }
    }
}

#[test]
fn the_manual_and_the_module_say_what_v1_never_produces() {
    let manual = include_str!("../../../docs/evidence.md");
    for text in [section(manual, "\n## Discovery\n"), include_str!("../../../src/adapter/discovery.rs")] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("//! ", "");
        assert!(
            text.contains("`typed_payload` and `unmapped` are frozen members of the source enum that v1 never produces"),
            "{text}"
        );
    }
}
