//! Finds secrets that stand in a config where the name of an environment variable belongs.

use toml::Spanned;
use toml::de::DeValue;

/// What the secrets of well-known services, private keys and the node's own keys begin with.
const PREFIXES: &[&str] = &[
    "chk_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat",
    "xox",
    "AKIA",
    "ASIA",
    "AIza",
    "sk_",
    "rk_",
    "pk_",
    "eyJ",
    "npm_",
    "pypi",
    "hf_",
    "MIIE",
    "MIIC",
    "MIIJ",
    "MIGH",
    "MC4C",
];
/// A text of this length that mixes digits and lower case is taken for a secret.
const LONG: usize = 20;
/// Hexadecimal digits alone, in either case, that are as long as a key.
const HEX_KEY: usize = 32;

/// The place and the fault of a value that should name an environment variable and cannot. The value is not repeated, for it
/// may be the secret itself.
pub(super) fn literal_secret(key: &str, value: &Spanned<DeValue<'_>>) -> Option<(std::ops::Range<usize>, String)> {
    match value.get_ref() {
        DeValue::Table(table) => table.iter().find_map(|(inner, value)| {
            let (place, fault) = literal_secret(inner.get_ref(), value)?;
            Some((place, format!("{inner}: {fault}", inner = inner.get_ref())))
        }),
        DeValue::Array(items) => items.iter().find_map(|item| literal_secret(key, item)),
        DeValue::String(text) if (key == "env" || key.ends_with("_env")) && !names_a_variable(text) => {
            let fault = "expected the name of an environment variable, as in \"PLANNER_KEY\"; this looks like the secret itself";
            Some((value.span(), fault.to_owned()))
        }
        _ => None,
    }
}

/// Whether a text can name an environment variable and does not look like a secret.
fn names_a_variable(text: &str) -> bool {
    let is_name = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let starts = text.bytes().next().is_some_and(|byte| is_name(byte) && !byte.is_ascii_digit());
    starts && text.bytes().all(is_name) && !looks_secret(text)
}

fn looks_secret(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let is_mixed = text.len() >= LONG && has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase);
    let is_hex = text.len() >= HEX_KEY && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_mixed || is_hex || PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    const SECRETS: &[&str] = &[
        "sk-hidden-hidden",
        "chk_hidden_hidden",
        "9hidden",
        "ghp_hiddenHIDDENhidden",
        "github_pat_HIDDEN",
        "xoxb_hidden",
        "AKIAHIDDENHIDDEN",
        "sk_live_hidden",
        "MIIEvHIDDENhidden",
        "hidden0hidden1hidden2",
        "Hidden_0_hidden_1_hid",
        "abcdefabcdefabcdefabcdefabcdefab",
        "A0B1C2D3E4F5A0B1C2D3E4F5A0B1C2D3",
    ];

    fn faults(text: &str) -> Vec<String> {
        Config::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_secret_in_the_file_is_named_and_not_repeated() {
        let found = faults("[callers.a]\nkey = 'sk-hidden-hidden'\n");
        let advice =
            "a secret does not belong in the file: put it in an environment variable, and set `key_env` to the variable's name";
        assert!(found.contains(&format!("2:1: unknown key `callers.a.key`; {advice}")), "{found:#?}");
        for secret in SECRETS {
            for (text, place) in [
                (format!("[callers.a]\nkey_env = '{secret}'\n"), "2:11: callers.a.key_env: expected the name of an"),
                (
                    format!("[agents.a]\nurl = 'http://h'\ncredentials = {{ bearer_env = '{secret}' }}\n"),
                    "3:30: agents.a.credentials: bearer_env: expected the name of an",
                ),
            ] {
                let found = faults(&text);
                assert_eq!(found.len(), 1, "{found:#?}");
                assert!(found[0].starts_with(place), "{found:#?}");
                assert!(!found[0].contains(secret), "{found:#?}");
            }
        }
        let found = faults("[agents.a]\nurl = 'http://h'\ncredentials = { bearer = 'hidden' }\n");
        assert!(found[0].contains("set `bearer_env` to the variable's name") && !found[0].contains("hidden"), "{found:#?}");
        for name in ["planner_key2", "PLANNER_KEY_OF_THE_STAGING_CLUSTER_2", "the_key_of_the_staging_cluster", "SKY_1", "MIIRROR"]
        {
            assert!(Config::parse(&format!("[callers.a]\nkey_env = '{name}'\n")).is_ok(), "{name}");
        }
    }

    #[test]
    fn secrets_in_lists_and_of_the_nodes_keys_are_named_and_not_repeated() {
        for secret in SECRETS {
            for (text, place) in [
                (format!("[push.origins.'https://h.example']\nsecret_env = ['FINE', '{secret}']\n"), "2:23: push.origins"),
                (format!("[keys.push]\nenv = '{secret}'\n"), "2:7: keys.push.env: expected the name of an"),
            ] {
                let found = faults(&text);
                assert!(found.iter().any(|fault| fault.starts_with(place)), "{found:#?}");
                assert!(found.iter().all(|fault| !fault.contains(secret)), "{found:#?}");
            }
        }
    }
}
