//! Where the card of an agent may be, the most specific place first.

use url::Url;

const NEWER: &str = ".well-known/agent-card.json";
const ORIGINAL: &str = ".well-known/agent.json";

/// A URL that names a JSON file is the card itself. Otherwise the card is below the agent's own path, or at the root of its
/// host, under the name of today or that of the original protocol. A server of several agents may have it between the two, as
/// `/.well-known/ID/agent-card.json` beside `/a2a/ID`. Last, the agent's own URL may answer with it. `None` for what is no URL.
pub fn candidates(url: &str) -> Option<Vec<String>> {
    let url = Url::parse(url).ok().filter(|url| url.host().is_some())?;
    if url.path().ends_with(".json") {
        return Some(vec![url.to_string()]);
    }
    let own = url.path().trim_end_matches('/').to_owned();
    let mut paths: Vec<String> = [NEWER, ORIGINAL].iter().map(|name| format!("{own}/{name}")).collect();
    if let Some((above, id)) = own.rsplit_once('/') {
        let above = above.strip_suffix("/a2a").unwrap_or(above);
        paths.push(format!("{above}/.well-known/{id}/agent-card.json"));
        paths.extend([NEWER, ORIGINAL].iter().map(|name| format!("/{name}")));
    }
    let at = |path: String| {
        let mut place = url.clone();
        place.set_path(&path);
        place.set_query(None);
        place.set_fragment(None);
        place.to_string()
    };
    let mut all: Vec<String> = paths.into_iter().map(at).collect();
    let mut itself = url.clone();
    itself.set_fragment(None);
    all.push(itself.into());
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_1_4_1_the_most_specific_place_comes_first_and_the_url_itself_last() {
        let all = |url: &str| candidates(url).unwrap_or_default();
        let at_root = ["https://h/.well-known/agent-card.json", "https://h/.well-known/agent.json", "https://h/"];
        assert_eq!(all("https://h/"), at_root);
        assert_eq!(
            all("https://h:1/agents/a/?x=1#y"),
            [
                "https://h:1/agents/a/.well-known/agent-card.json",
                "https://h:1/agents/a/.well-known/agent.json",
                "https://h:1/agents/.well-known/a/agent-card.json",
                "https://h:1/.well-known/agent-card.json",
                "https://h:1/.well-known/agent.json",
                "https://h:1/agents/a/?x=1",
            ]
        );
        assert!(all("https://h/api/a2a/echo").contains(&"https://h/api/.well-known/echo/agent-card.json".to_owned()));
        assert!(all("https://h/a2a/echo/").contains(&"https://h/.well-known/echo/agent-card.json".to_owned()));
        assert_eq!(all("https://h/cards/mine.json"), ["https://h/cards/mine.json"]);
        assert_eq!(candidates("h:1"), None);
        assert_eq!(candidates("nonsense"), None);
    }
}
