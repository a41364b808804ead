//! The control plane behind [`Node::chancery`](crate::Node::chancery), with the types that its calls take and return.

pub use chancery_core::notify;
pub use chancery_core::{
    AddressRotation, Agent, AgentIdentities, Agents, Answer, AnswerPermit, Bill, BillBy, BillLine, ByteLimits, BytePermit,
    CallTree, CascadeOutcome, Cascaded, Chancery, ChanceryParts, Collection, Decision, Dedupe, Delegation, Fact, ForeignToken,
    Freeze, FreezeScope, Hop, HopTokenService, LateReply, LineageHeaders, LineageRecord, LogEntry, LoopNeed, LoopTracker,
    MemoryRecall, Nearest, NextEvents, OffloadedPart, PageEnd, PageReader, PartStore, PlacedCalls, RecallRequest, Recovered,
    RetentionConfig, Rule, Rulebook, Seal, SentLineage, SharedMemory, SkillRouting, Spend, Subscription, SubtreeCost, TaskLimits,
    TokenTask, TreeCost, TreePage, TreeTask, Verdict, WrittenGeneration,
};
