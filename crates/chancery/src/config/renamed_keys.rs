//! Keys of the config that have a new name: the old one is still read, with a warning that names the new one.

/// The sections, with the old and the new name of each key. Upper bounds are called `max_x` and lower ones `min_x`.
const RENAMED: [(&str, &str, &str); 7] = [
    ("jwks", "least_age_s", "min_age_s"),
    ("jwks", "most_age_s", "max_age_s"),
    ("peers", "reconnect_most_ms", "max_reconnect_ms"),
    ("peers", "poll_most_ms", "max_poll_ms"),
    ("health", "cooldown_most_ms", "max_cooldown_ms"),
    ("health", "eject_most_ms", "max_eject_ms"),
    ("push", "in_flight_per_origin_most", "max_in_flight_per_origin"),
];

/// Returns the new name of a key, if it has one. `path` is the section with a dot behind it, as in `peers.`.
pub(super) fn new_name(path: &str, key: &str) -> Option<&'static str> {
    let section = path.strip_suffix('.')?;
    RENAMED.iter().find(|(at, old, _)| *at == section && *old == key).map(|(_, _, new)| *new)
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn every_old_key_is_read_as_the_new_one_and_warned_of_where_it_stands() {
        for (section, old, new) in RENAMED {
            let text = |key: &str| format!("# mine\n[{section}]\n{key} = 299999\n");
            let (config, places) = Config::read(&text(old)).unwrap();
            assert_eq!(config, Config::parse(&text(new)).unwrap(), "{section}.{old}");
            assert_ne!(config, Config::default(), "{section}.{old}");
            let warnings: Vec<String> = places.warnings().iter().map(ToString::to_string).collect();
            assert_eq!(warnings, [format!("3:1: {section}.{old}: is the old name of this key; write {section}.{new}")]);
            assert!(places.has(&format!("{section}.{new}")) && !places.has(&format!("{section}.{old}")));
            assert!(Config::read(&text(new)).unwrap().1.warnings().is_empty(), "{section}.{new}");
        }
    }

    #[test]
    fn a_key_that_is_written_under_both_names_is_a_fault() {
        for (section, old, new) in RENAMED {
            let faults = Config::parse(&format!("[{section}]\n{old} = 299999\n{new} = 299999\n")).unwrap_err();
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            assert_eq!(
                faults,
                [format!("2:1: {section}.{old}: is the old name of {section}.{new}, which is set too; remove it")]
            );
        }
    }

    #[test]
    fn a_bad_value_of_an_old_key_is_a_fault_of_the_new_one_and_json_is_warned_of_too() {
        let faults = Config::parse("[peers]\npoll_most_ms = 'soon'\n").unwrap_err();
        assert!(faults.len() == 1 && faults[0].message.starts_with("peers.max_poll_ms: "), "{faults:?}");
        let (config, places) = Config::read("{\n  \"peers\": {\n    \"poll_most_ms\": 5000 } }").unwrap();
        assert_eq!(config.peers.follow.max_poll_ms, 5000);
        assert_eq!(places.warnings().len(), 1);
        assert_eq!(places.warnings()[0].line, 3);
    }

    #[test]
    fn the_schema_has_the_new_names_only() {
        let schema = super::super::schema::schema();
        for (section, old, new) in RENAMED {
            let keys = &schema["properties"][section]["properties"];
            assert!(keys.get(old).is_none() && keys.get(new).is_some(), "{section}: {old}, {new}");
        }
    }
}
