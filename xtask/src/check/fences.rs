//! Which crates from outside may be used where: no sockets in the model, SQL only in the store, `anyhow` only in programs.

use super::Violation;
use crate::packages::Package;

struct Fence {
    crates: &'static [&'static str],
    place: FenceSide,
    /// Whether tests may climb over.
    open_for_tests: bool,
    reason: &'static str,
}

enum FenceSide {
    OnlyIn(&'static [&'static str]),
    NotIn(&'static [&'static str]),
}

const SQL: &[&str] = &["deadpool-postgres", "libsqlite3-sys", "postgres", "rusqlite", "sqlx", "tokio-postgres"];

const SOCKETS: &[&str] = &[
    "axum",
    "h2",
    "http",
    "http-body",
    "http-body-util",
    "hyper",
    "hyper-util",
    "mio",
    "reqwest",
    "socket2",
    "tonic",
    "tower",
    "tower-http",
];

const ASYNC: &[&str] = &["async-trait", "futures", "tokio", "tokio-stream", "tokio-util"];

const OFFICIAL_SDK: &[&str] = &["a2a-client-lf", "a2a-grpc", "a2a-lf", "a2a-pb", "a2a-server-lf", "a2a-slimrpc"];

const FENCES: &[Fence] = &[
    Fence {
        crates: SQL,
        place: FenceSide::OnlyIn(&["chancery-store"]),
        open_for_tests: false,
        reason: "only the store has SQL: ask for what you need through a port of core",
    },
    Fence {
        crates: SOCKETS,
        place: FenceSide::NotIn(&["chancery-protocol", "chancery-rules", "chancery-core", "chancery-swp"]),
        open_for_tests: false,
        reason: "no sockets and no HTTP here: that belongs to inbound, outbound or wire",
    },
    Fence {
        crates: ASYNC,
        place: FenceSide::NotIn(&["chancery-protocol", "chancery-rules"]),
        open_for_tests: false,
        reason: "plain functions and plain data only: waiting belongs to core",
    },
    Fence {
        crates: &["anyhow"],
        place: FenceSide::OnlyIn(&["chancery", "chancery-bench", "xtask", "xtask-codegen"]),
        open_for_tests: true,
        reason: "only programs use anyhow: give this crate a thiserror error that keeps its source",
    },
    Fence {
        crates: &["protox", "prost-build", "tonic-build", "tonic-prost-build"],
        place: FenceSide::OnlyIn(&["xtask-codegen"]),
        open_for_tests: false,
        reason: "generated code is committed: `cargo xtask codegen` writes it",
    },
    Fence {
        crates: OFFICIAL_SDK,
        place: FenceSide::OnlyIn(&["chancery-a2a-sdk"]),
        open_for_tests: true,
        reason: "the model is ours: the official crates are for interop tests and the SDK adapter",
    },
];

pub(super) fn violations(packages: &[Package]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        for dependency in &package.dependencies {
            let fence = FENCES.iter().find(|fence| {
                fence.crates.contains(&dependency.name.as_str())
                    && fence.keeps_out(&package.name)
                    && !(fence.open_for_tests && dependency.is_only_for_tests())
            });
            violations.extend(fence.map(|fence| Violation {
                rule: "fences",
                place: package.name.clone(),
                fault: format!("may not depend on {}", dependency.name),
                remedy: fence.reason.to_owned(),
            }));
        }
    }
    violations
}

impl Fence {
    fn keeps_out(&self, package: &str) -> bool {
        match self.place {
            FenceSide::OnlyIn(packages) => !packages.contains(&package),
            FenceSide::NotIn(packages) => packages.contains(&package),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::samples::package;

    fn refused(name: &str, uses: &str) -> bool {
        let found = violations(&[package(name, &[uses])]);
        assert!(found.len() <= 1, "{found:?}");
        !found.is_empty()
    }

    #[test]
    fn the_model_and_the_rules_have_no_async_no_http_and_no_sql() {
        for name in ["chancery-protocol", "chancery-rules"] {
            for used in ["tokio", "http", "hyper", "rusqlite", "axum", "tonic", "reqwest"] {
                assert!(refused(name, used), "{name} -> {used}");
                assert!(refused(name, &format!("dev:{used}")), "{name} -> dev {used}");
            }
            assert!(!refused(name, "serde"));
        }
    }

    #[test]
    fn core_may_wait_but_has_no_sockets() {
        assert!(!refused("chancery-core", "tokio"));
        assert!(refused("chancery-core", "hyper"));
        assert!(!refused("chancery-inbound", "hyper"));
    }

    #[test]
    fn only_the_store_has_sql() {
        assert!(!refused("chancery-store", "rusqlite"));
        for name in ["chancery", "chancery-core", "chancery-inbound", "chancery-evidence", "xtask"] {
            assert!(refused(name, "rusqlite"), "{name}");
            assert!(refused(name, "dev:tokio-postgres"), "{name}");
        }
    }

    #[test]
    fn only_programs_and_tests_use_anyhow() {
        assert!(!refused("chancery", "anyhow"));
        assert!(!refused("chancery-wire", "dev:anyhow"));
        assert!(refused("chancery-wire", "anyhow"));
    }

    #[test]
    fn the_schema_compiler_stays_in_its_own_package() {
        assert!(!refused("xtask-codegen", "protox"));
        assert!(refused("xtask", "protox"));
        assert!(refused("chancery-wire", "tonic-prost-build"));
    }

    #[test]
    fn the_official_crates_serve_tests_and_the_adapter_only() {
        assert!(!refused("chancery-a2a-sdk", "a2a-lf"));
        assert!(!refused("chancery", "dev:a2a-client-lf"));
        assert!(refused("chancery-wire", "a2a-lf"));
    }
}
