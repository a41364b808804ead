//! Tool use and tool results as data parts, in the shape that `docs/tool-parts.md` describes.
//!
//! The protocol has no parts for tools. An agent shows its tool calls in data parts of this shape, in the messages of its
//! `working` updates. Callers that do not know the shape see data.

use chancery_protocol::{Part, PartContent};
use serde_json::{Value, json};

/// The media type of these parts.
pub const MEDIA_TYPE: &str = "application/vnd.chancery.tool+json";

/// The content of such a part.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolPart {
    /// The agent calls a tool. `id` ties the result to the call.
    Use {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
        /// The input of the tool.
        input: Value,
    },
    /// The result of a call.
    Result {
        /// The id of the call.
        tool_use_id: String,
        /// What the tool returned.
        content: Value,
        /// Whether the tool failed.
        is_error: bool,
    },
}

/// Makes the part for a call of the tool `name` with `input`.
pub fn tool_use(id: impl Into<String>, name: impl Into<String>, input: Value) -> Part {
    ToolPart::Use { id: id.into(), name: name.into(), input }.into()
}

/// Makes the part for the result of the call `tool_use_id`.
pub fn tool_result(tool_use_id: impl Into<String>, content: Value) -> Part {
    ToolPart::Result { tool_use_id: tool_use_id.into(), content, is_error: false }.into()
}

/// Makes the part for the failure of the call `tool_use_id`.
pub fn tool_error(tool_use_id: impl Into<String>, content: Value) -> Part {
    ToolPart::Result { tool_use_id: tool_use_id.into(), content, is_error: true }.into()
}

impl ToolPart {
    /// Reads a part. Returns `None` for any part that is not exactly one of these.
    pub fn of(part: &Part) -> Option<Self> {
        let PartContent::Data(json) = &part.content else { return None };
        let Value::Object(mut object) = json.to_value() else { return None };
        let kind = text(object.remove("type"))?;
        match kind.as_str() {
            "tool_use" => Some(Self::Use {
                id: text(object.remove("id"))?,
                name: text(object.remove("name"))?,
                input: object.remove("input")?,
            }),
            "tool_result" => Some(Self::Result {
                tool_use_id: text(object.remove("tool_use_id"))?,
                content: object.remove("content")?,
                is_error: object.remove("is_error")?.as_bool()?,
            }),
            _ => None,
        }
    }
}

impl From<ToolPart> for Part {
    fn from(tool: ToolPart) -> Self {
        let data = match tool {
            ToolPart::Use { id, name, input } => json!({ "type": "tool_use", "id": id, "name": name, "input": input }),
            ToolPart::Result { tool_use_id, content, is_error } => {
                json!({ "type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error })
            }
        };
        Self { media_type: Some(MEDIA_TYPE.to_owned()), ..Self::data(&data) }
    }
}

fn text(value: Option<Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_part_reads_back_as_what_was_written() {
        for (part, tool) in [
            (
                tool_use("u1", "search", json!({ "q": "x" })),
                ToolPart::Use { id: "u1".into(), name: "search".into(), input: json!({ "q": "x" }) },
            ),
            (
                tool_result("u1", json!(["hit"])),
                ToolPart::Result { tool_use_id: "u1".into(), content: json!(["hit"]), is_error: false },
            ),
            (
                tool_error("u1", json!("no network")),
                ToolPart::Result { tool_use_id: "u1".into(), content: json!("no network"), is_error: true },
            ),
        ] {
            assert_eq!(ToolPart::of(&part), Some(tool));
            assert_eq!(part.media_type.as_deref(), Some(MEDIA_TYPE));
        }
    }

    #[test]
    fn other_data_is_no_tool_part() {
        for data in [json!({}), json!([1]), json!({ "type": "tool_use", "id": "u" }), json!({ "type": "tool", "id": "u" })] {
            assert_eq!(ToolPart::of(&Part::data(&data)), None, "{data}");
        }
        assert_eq!(ToolPart::of(&Part::text("tool_use")), None);
    }

    #[test]
    fn the_documented_examples_are_tool_parts() {
        let document = include_str!("../docs/tool-parts.md");
        let examples: Vec<&str> = document.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(examples.len(), 3);
        for example in examples {
            let part: Part = serde_json::from_str(example).unwrap();
            assert!(ToolPart::of(&part).is_some(), "{example}");
        }
    }
}
