//! The `[health]` section, and tests of the promises of `[routing]` and `[health]`.

use chancery_rules::health::HealthConfig;

use super::section::Section;

pub(super) fn read_health(health: &mut Section<'_, '_>) -> HealthConfig {
    let config = HealthConfig { breaker: health.fields(), outliers: health.fields(), checks: health.fields() };
    let least_and_most = [
        ("max_cooldown_ms", config.breaker.max_cooldown_ms, "cooldown_ms", config.breaker.cooldown_ms),
        ("max_eject_ms", config.outliers.max_eject_ms, "eject_ms", config.outliers.eject_ms),
    ];
    for (most_key, most, key, first) in least_and_most {
        if most < first {
            health.complain(format!("{most_key} is {most}, less than {key}, which is {first}"));
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chancery_rules::health::{BreakerConfig, CheckConfig, OutlierConfig};
    use chancery_rules::routing::{Fallback, RoutingConfig, SelectorName};

    use super::super::Config;
    use super::super::fields::field_names;

    fn faults(text: &str) -> Vec<String> {
        Config::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_example_of_the_decision_record_is_read_as_it_stands() {
        let text =
            "[routing]\ndefault_selector = 'cheapest_under_latency'\nlatency_budget_ms = 2000\nfallback = 'lowest_latency'\n";
        let routing = Config::parse(text).unwrap().routing;
        let selector = SelectorName::CheapestUnderLatency;
        assert_eq!(routing, RoutingConfig { default_selector: selector, latency_budget_ms: 2000, ..RoutingConfig::default() });
        assert_eq!(routing.fallback, Fallback::LowestLatency);
    }

    #[test]
    fn an_unknown_selector_is_a_fault_with_its_line_and_the_name_that_was_meant() {
        let found = faults("[routing]\nseed = 1\ndefault_selector = 'lowest_latancy'\nfallback = 'locl'\n");
        assert_eq!(found.len(), 2, "{found:#?}");
        for (fault, place, meant) in [
            (&found[0], "3:20: routing.default_selector: unknown value `lowest_latancy`, expected one of ", "lowest_latency"),
            (&found[1], "4:12: routing.fallback: unknown value `locl`, expected one of ", "local"),
        ] {
            assert!(fault.starts_with(place) && fault.ends_with(&format!("; did you mean `{meant}`?")), "{fault}");
        }
        let strange = faults("[routing]\ndefault_selector = 'by_the_weather_forecast'\n");
        assert!(strange[0].starts_with("2:20: ") && !strange[0].contains("did you mean"), "{strange:#?}");
        assert!(faults("[routing]\ndefault_selector = 'local'\n")[0].starts_with("2:20: "), "only a fallback can be local");
    }

    #[test]
    fn numbers_nobody_can_mean_are_faults_where_they_stand() {
        let found = faults(
            "[routing]\nlatency_budget_ms = 0\nseed = -1\nforget_after_ms = 0\n[health]\nfailures = 0\nfailure_percent = 101\n\
             ejected_percent = 51\neject_latency_multiple = 1\ncheck_evry_ms = 1\n",
        );
        let expected = [
            "2:21: routing.latency_budget_ms: must be more than 0",
            "3:8: routing.seed: expected a whole number ≥ 0, got -1",
            "4:19: routing.forget_after_ms: must be more than 0",
            "6:12: health.failures: must be more than 0",
            "7:19: health.failure_percent: must be from 1 to 100",
            "8:19: health.ejected_percent: must be from 0 to 50",
            "9:26: health.eject_latency_multiple: must be from 2 to 4294967295",
            "10:1: unknown key `health.check_evry_ms`; did you mean `check_every_ms`?",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (fault, expected) in found.iter().zip(expected) {
            assert!(fault.starts_with(expected), "{fault}\nwanted {expected}");
        }
    }

    #[test]
    fn a_longest_wait_shorter_than_the_first_is_a_fault() {
        let found = faults("[health]\ncooldown_ms = 7\nmax_cooldown_ms = 6\neject_ms = 300001\n");
        let expected = [
            "1:2: health: max_cooldown_ms is 6, less than cooldown_ms, which is 7",
            "1:2: health: max_eject_ms is 300000, less than eject_ms, which is 300001",
        ];
        assert_eq!(found, expected);
        let config = Config::parse("[health]\ncooldown_ms = 7\nmax_cooldown_ms = 7\n").unwrap();
        assert_eq!(config.health.breaker, BreakerConfig { cooldown_ms: 7, max_cooldown_ms: 7, ..BreakerConfig::default() });
    }

    #[test]
    fn the_shipped_file_shows_every_key_and_none_belongs_to_two_parts() {
        let names = [
            field_names::<BreakerConfig>(),
            field_names::<OutlierConfig>(),
            field_names::<CheckConfig>(),
            field_names::<RoutingConfig>(),
        ]
        .concat();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let text = include_str!("../../examples/chancery.toml");
        let shown = |name: &str| text.lines().any(|line| line.trim_start_matches("# ").starts_with(&format!("{name} = ")));
        let hidden: Vec<_> = names.iter().filter(|name| !shown(name)).collect();
        assert!(names.len() >= 20 && hidden.is_empty(), "{hidden:?}");
    }
}
