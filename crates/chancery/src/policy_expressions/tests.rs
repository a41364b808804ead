//! Tests that conditions mean what they say, and that pointless or too expensive conditions are rejected.

use chancery_rules::lineage::Attribution;
use chancery_rules::policy::{CallFacts, Expression as _, PolicyError, RuleConfig};

use super::inspect::MAX_BRACKETS;
use super::*;

fn facts() -> CallFacts<'static> {
    CallFacts {
        caller: "planner",
        tenant: "acme",
        agent: "writer",
        skill: None,
        operation: "SendMessage",
        depth: 3,
        attribution: Attribution::Inferred,
        remaining_usd: None,
        version: "1.0",
        binding: "GRPC",
    }
}

fn holds(text: &str, facts: &CallFacts<'_>) -> Result<bool, String> {
    Conditions::default().read(text).unwrap_or_else(|fault| panic!("{text}: {fault}")).holds(facts)
}

fn fault(text: &str) -> String {
    Conditions::default().read(text).map(|condition| panic!("{condition:?} was read")).unwrap_err()
}

#[test]
fn every_fact_of_a_call_can_be_asked_for() {
    let rich = CallFacts { skill: Some("search"), remaining_usd: Some(chancery_rules::MicroUsd(50_000)), ..facts() };
    for (text, plain, with_more) in [
        ("caller == 'planner' && tenant == 'acme' && agent == 'writer'", true, true),
        ("skill == ''", true, false),
        ("skill in ['search', 'read']", false, true),
        ("skill.startsWith('sea')", false, true),
        ("operation in ['SendMessage', 'SendStreamingMessage']", true, true),
        ("depth > 2 && depth <= 3", true, true),
        ("attribution != 'verified'", true, true),
        ("remaining_usd < 0.1", false, true),
        ("remaining_usd == 0.05", false, true),
        ("version == '1.0' && binding == 'GRPC'", true, true),
        ("['plan', 'write'].exists(start, caller.startsWith(start))", true, true),
        ("['a', 'b'].filter(x, x != 'a').all(x, x == 'b')", true, true),
        ("size(caller) == 7 && caller.contains('ann') && agent.endsWith('er')", true, true),
        ("depth > 5 ? tenant == 'acme' : true", true, true),
    ] {
        assert_eq!((holds(text, &facts()), holds(text, &rich)), (Ok(plain), Ok(with_more)), "{text}");
    }
}

#[test]
fn what_cannot_be_worked_out_is_an_error_and_not_false() {
    for text in [
        "int(caller) > 3",
        "1 / (depth - 3) == 1",
        "['a'][depth] == 'a'",
        "depth == 3 ? depth - 9223372036854775807 - 9 > 0 : true",
    ] {
        let fault = holds(text, &facts()).unwrap_err();
        assert!(!fault.is_empty(), "{text}");
    }
}

#[test]
fn a_condition_that_can_never_work_is_not_read() {
    for (text, said) in [
        ("", "line 1 column"),
        ("caller ==", "line 1 column"),
        ("caller == 'x' &&\n  user == 'y'", "there is no name \"user\", only caller, tenant"),
        ("caller == 'x' &&\n  user == 'y'", "(line 2 column 3 of the condition)"),
        ("request.auth == 'x'", "there is no name \"request\""),
        ("__result__ == 1", "there is no name \"__result__\""),
        ("['a'].all(x, x == 'a') && x == 'a'", "there is no name \"x\""),
        ("caller.matches('(a+)+b')", "there is no function \"matches\""),
        ("now() > 1", "there is no function \"now\""),
        ("timestamp('2020-01-01T00:00:00Z') != 1", "there is no function \"timestamp\""),
        ("depth", "true or false"),
        ("'deny'", "true or false"),
        ("depth > 'three'", "does not apply to"),
        ("caller + 1 == 'x'", "does not apply to"),
        ("[1,2].all(x, [1,2].all(y, x == y))", "a loop in a loop"),
        ("[1,2].exists(x, [x].map(y, y).size() > 0)", "a loop in a loop"),
        ("a.b{c: 1} == 1", "messages"),
    ] {
        let fault = fault(text);
        assert!(fault.contains(said), "{text}: {fault}");
    }
}

#[test]
fn faults_of_conditions_are_in_plain_words_with_their_place() {
    for (text, whole) in [
        ("depth >", "the condition ends too early: a value or a bracket is missing (line 1 column 8 of the condition)"),
        (
            "foo > 3",
            "there is no name \"foo\", only caller, tenant, agent, skill, operation, depth, attribution, remaining_usd, version, binding \
             (line 1 column 1 of the condition)",
        ),
        ("depth == 'x'", "`depth` is a whole number and never equals a text (line 1 column 7 of the condition)"),
        (
            "caller == 'x' ||\n  3 != caller",
            "`caller` is a text and never equals a whole number (line 2 column 5 of the condition)",
        ),
        (
            "remaining_usd == true",
            "`remaining_usd` is a number and never equals true or false (line 1 column 15 of the condition)",
        ),
        ("depth = 3", "`=` is no operator of CEL; compare with `==` (line 1 column 7 of the condition)"),
        ("depth > 3 and caller == 'x'", "`and` is no operator of CEL; write `&&` (line 1 column 11 of the condition)"),
        (
            "depth > 3 &&\n  (caller == 'x'",
            "the condition ends too early: a value or a bracket is missing (line 2 column 17 of the condition)",
        ),
        ("caller == 'x", "a text has no closing quote, or an unknown escape (line 1 column 11 of the condition)"),
        ("depth > 3 )", "`)` is not expected here (line 1 column 11 of the condition)"),
        ("while == 1", "`while` is a reserved word of CEL (line 1 column 1 of the condition)"),
        ("", "the condition is empty (line 1 column 1 of the condition)"),
        ("depth", "its value is a whole number; a condition is true or false"),
        ("depth > 'three'", "`>` does not apply to a whole number and a text"),
        ("caller + 1 == 'x'", "`+` does not apply to a text and a whole number"),
    ] {
        assert_eq!(fault(text), whole, "{text}");
    }
    for (text, whole) in [
        ("int(caller) > 3", "`int` cannot convert its argument"),
        ("1 / (depth - 3) == 1", "it divides by zero"),
        ("['a'][depth] == 'a'", "an index is outside of its list"),
        ("depth == 3 ? depth - 9223372036854775807 - 9 > 0 : true", "a number does not fit into 64 bits"),
    ] {
        assert_eq!(holds(text, &facts()).unwrap_err(), whole, "{text}");
    }
    for fine in ["depth == 3", "remaining_usd != 3", "remaining_usd == 0.5", "caller == skill", "caller != null"] {
        assert!(Conditions::default().read(fine).is_ok(), "{fine}");
    }
}

#[test]
fn a_condition_has_so_many_bytes_and_no_more() {
    let long = |length: usize| format!("caller != '{}'", "x".repeat(length - 12));
    assert!(Conditions::default().read(&long(MAX_EXPRESSION)).is_ok());
    assert!(fault(&long(MAX_EXPRESSION + 1)).contains("2049 bytes"));
}

/// On a stack much smaller than any the node works on.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn a_condition_is_nested_so_deep_and_no_deeper() {
    on_a_small_stack(|| {
        let chain = |terms: usize| format!("depth{} > 0", " + 1".repeat(terms));
        assert!(holds(&chain(MAX_NESTING - 2), &facts()).unwrap());
        assert!(fault(&chain(MAX_NESTING)).contains("nested more than 24 deep"));
        assert!(fault(&format!("depth{} > 0", "+1".repeat(1_000))).contains("nested more than 24 deep"));
        let brackets = |count: usize| format!("{}true{}", "(".repeat(count), ")".repeat(count));
        assert!(holds(&brackets(MAX_BRACKETS), &facts()).unwrap());
        assert!(fault(&brackets(MAX_BRACKETS + 1)).contains("more than 32 brackets are open at line 1 column 33"));
    });
}

#[test]
fn hostile_text_is_refused_or_worked_out_but_breaks_nothing() {
    on_a_small_stack(|| {
        let most = |piece: &str| piece.repeat(MAX_EXPRESSION / piece.len());
        for text in [
            most("("),
            most("["),
            most("{"),
            most("!"),
            most("-"),
            most("a."),
            most("a?"),
            most("a?a:"),
            most("'"),
            most("'''"),
            most("\\"),
            most("\0"),
            most("é"),
            most("1 in "),
            most("x.all(x,"),
            most("has("),
            format!("{}{}", "{".repeat(MAX_BRACKETS), most("a?a:")).split_at(MAX_EXPRESSION).0.to_owned(),
            format!("{}{}", "x.all(x,".repeat(MAX_BRACKETS), "-".repeat(500)),
            format!("depth{}", ".a".repeat(1_000)),
            format!("depth{}", "[1]".repeat(600)),
            format!("true{}", most("&&true").split_at(2_000).0),
            format!("[{}1].all(x, x == 1)", "1,".repeat(900)),
            format!("[{}1].map(x, caller + caller).size() > 0", "1,".repeat(900)),
        ] {
            let read = Conditions::default().read(&text);
            if let Ok(condition) = read {
                let _ = condition.holds(&facts());
            }
        }
    });
}

/// Numbers that are the same for the same seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % end
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn condition(&mut self, depth: usize) -> String {
        let deeper = depth.saturating_sub(1);
        match if depth == 0 { 0 } else { self.below(6) } {
            0 => format!("{} {} {}", self.value(), self.one(&["==", "!=", "<", ">=", "in"]), self.value()),
            1 => format!("({} && {})", self.condition(deeper), self.condition(deeper)),
            2 => format!("{} || {}", self.condition(deeper), self.condition(deeper)),
            3 => format!("!({})", self.condition(deeper)),
            4 => format!("['a', caller, skill].{}(x, x == {})", self.one(&["all", "exists", "exists_one"]), self.value()),
            _ => format!("{} ? {} : {}", self.condition(0), self.condition(deeper), self.condition(deeper)),
        }
    }

    fn value(&mut self) -> &'static str {
        self.one(&[
            "caller",
            "skill",
            "depth",
            "remaining_usd",
            "'a'",
            "1",
            "0.5",
            "-9223372036854775808",
            "[1, 2]",
            "{'a': 1}",
            "depth / (depth - 3)",
            "size(agent)",
            "int(caller)",
            "null",
        ])
    }
}

#[test]
fn noise_is_refused_or_worked_out_but_breaks_nothing() {
    let seed = 0x5eed_0159_u64;
    println!("seed {seed}");
    let mut draw = Draw(seed);
    let conditions = Conditions::default();
    let (mut read, mut refused) = (0, 0);
    for round in 0..600 {
        let mut text = draw.condition(3);
        if round % 2 == 0 {
            let place = draw.below(text.len());
            text.replace_range(place..=place, draw.one(&["", "(", ")", "'", ".", "?", "0", " ", "[", "\\"]));
        }
        match conditions.read(&text) {
            Ok(condition) => {
                read += 1;
                let _ = condition.holds(&facts());
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}

#[test]
fn all_faults_of_all_rules_are_told_with_the_rule_and_the_place() {
    let rule = |name: &str, text: &str| RuleConfig { name: name.into(), deny_when: Some(text.into()), allow_when: None };
    let faults =
        Conditions::default().rules(&[rule("one", "caler == 'x'"), rule("two", "true"), rule("three", "1 +")]).unwrap_err();
    assert_eq!(faults.len(), 2);
    assert!(
        faults[0].starts_with("the rule \"one\": there is no name \"caler\"")
            && faults[0].ends_with("; did you mean `caller`? (line 1 column 1 of the condition)"),
        "{faults:?}"
    );
    assert!(faults[1].starts_with("the rule \"three\": "), "{faults:?}");

    let rules = Conditions::default().rules(&[rule("deep", "depth > 2"), rule("broken", "int(caller) == 1")]).unwrap();
    assert_eq!(rules.judge(&facts()), Err(PolicyError::Denied { rule: "deep".into(), fault: None }));
    let shallow = CallFacts { depth: 1, ..facts() };
    assert!(matches!(rules.judge(&shallow), Err(PolicyError::Denied { rule, fault: Some(_) }) if &*rule == "broken"));
    assert!(Conditions::default().rules(&[]).unwrap().is_empty());
}
