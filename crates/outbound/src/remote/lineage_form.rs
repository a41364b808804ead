//! Where an agent receives the lineage of its task: in headers, in metadata, or in both.

use chancery_core::GOVERNANCE_EXTENSION;
use chancery_core::lineage::AgentNaming;
use chancery_identity::cards::IDENTITY_EXTENSION;
use chancery_protocol::Version;
use chancery_protocol::raw_json::pick;

use super::settings::LineageSetting;

/// The ADR's member of metadata.
pub(super) const VENDOR: &str = "ruvector";

/// What is written where, for one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineageForm {
    pub(super) token_in_header: bool,
    pub(super) token_in_metadata: bool,
    pub(super) members: LineageMembers,
    pub(super) naming: AgentNaming,
}

/// Which members of the metadata are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineageMembers {
    None,
    /// The extension's, with everything.
    Extension,
    /// The ADR's, with everything.
    Vendor,
    /// The context in the ADR's, all else in the extension's.
    Both,
}

impl LineageForm {
    /// Agents that echo metadata get the token there, all others in a header. A node reads both, so it gets the context in the
    /// extension's member and the token in a header, where it does not make the body longer.
    pub(super) fn of(version: Version, setting: LineageSetting, extensions: &[String], card: &str) -> Self {
        let declares = |uri: &str| extensions.iter().any(|declared| declared == uri);
        let in_metadata =
            |members| Self { token_in_header: false, token_in_metadata: true, members, naming: AgentNaming::Tagged };
        let in_header = |members| Self { token_in_header: true, token_in_metadata: false, ..in_metadata(members) };
        match (version, setting) {
            (Version::Original, LineageSetting::Header) => {
                Self { naming: AgentNaming::AgentIds, ..in_header(LineageMembers::None) }
            }
            (Version::Original, _) => {
                Self { token_in_header: true, naming: AgentNaming::AgentIds, ..in_metadata(LineageMembers::Both) }
            }
            (_, LineageSetting::Header) => in_header(LineageMembers::None),
            (_, LineageSetting::Metadata) if declares(GOVERNANCE_EXTENSION) => in_metadata(LineageMembers::Extension),
            (_, LineageSetting::Metadata) if declares_vendor(extensions, card) => in_metadata(LineageMembers::Vendor),
            (_, LineageSetting::Metadata) => in_metadata(LineageMembers::Both),
            (_, LineageSetting::Auto) if declares(GOVERNANCE_EXTENSION) && declares(IDENTITY_EXTENSION) => {
                in_header(LineageMembers::Extension)
            }
            (_, LineageSetting::Auto) if declares(GOVERNANCE_EXTENSION) => in_metadata(LineageMembers::Extension),
            (_, LineageSetting::Auto) if declares_vendor(extensions, card) => in_metadata(LineageMembers::Vendor),
            (_, LineageSetting::Auto) => in_header(LineageMembers::None),
        }
    }

    /// Where lineage goes, in a word.
    pub(super) fn name(self) -> &'static str {
        match (self.token_in_header, self.members) {
            (true, LineageMembers::None) => "header",
            (true, _) => "both",
            (false, _) => "metadata",
        }
    }
}

/// Whether a card has a member `metadata.ruvector`, or an extension that is named so.
fn declares_vendor(extensions: &[String], card: &str) -> bool {
    let [metadata] = pick(card, ["metadata"]);
    let [vendor] = pick(metadata.unwrap_or("{}"), [VENDOR]);
    vendor.is_some_and(|vendor| vendor != "null") || extensions.iter().any(|uri| uri.contains(VENDOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_a_version_and_a_setting_say_where_lineage_goes() {
        use LineageMembers::{Both, Extension, None, Vendor};
        use LineageSetting::{Auto, Header, Metadata};
        let (ours, node) =
            (vec![GOVERNANCE_EXTENSION.to_owned()], vec![IDENTITY_EXTENSION.to_owned(), GOVERNANCE_EXTENSION.to_owned()]);
        let vendor = r#"{"name":"x","metadata":{"ruvector":{"artifact_kind_version":"v1"}}}"#;
        let plain = r#"{"name":"ruvector","metadata":{"other":1}}"#;
        type Case<'a> = (Version, LineageSetting, &'a [String], &'a str, (bool, bool, LineageMembers));
        let cases: [Case<'_>; 12] = [
            (Version::V1_0, Auto, &[], plain, (true, false, None)),
            (Version::V0_3, Auto, &[], plain, (true, false, None)),
            (Version::V1_0, Auto, &ours, plain, (false, true, Extension)),
            (Version::V0_3, Auto, &node, plain, (true, false, Extension)),
            (Version::V1_0, Auto, &[], vendor, (false, true, Vendor)),
            (Version::V1_0, Auto, &["https://ruvector.example/x".to_owned()], plain, (false, true, Vendor)),
            (Version::V1_0, Metadata, &[], plain, (false, true, Both)),
            (Version::V1_0, Metadata, &node, plain, (false, true, Extension)),
            (Version::V1_0, Header, &ours, vendor, (true, false, None)),
            (Version::Original, Auto, &[], plain, (true, true, Both)),
            (Version::Original, Metadata, &[], plain, (true, true, Both)),
            (Version::Original, Header, &[], plain, (true, false, None)),
        ];
        for (version, setting, extensions, card, expected) in cases {
            let form = LineageForm::of(version, setting, extensions, card);
            let said = (form.token_in_header, form.token_in_metadata, form.members);
            assert_eq!(said, expected, "{version} {setting:?} {extensions:?} {card}");
            assert_eq!(form.naming == AgentNaming::AgentIds, version == Version::Original);
        }
    }
}
