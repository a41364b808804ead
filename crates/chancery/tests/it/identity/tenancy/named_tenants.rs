//! A tenant is that of the credentials. A call that names another is refused in the same words whether there is such a tenant.

use chancery_protocol::{Binding, GetExtendedCard, GetTask, Request, Version};

use super::{Town, changed, message};
use crate::support::wire_client::{Combination, RawAnswer, RawCall};

const ME: &str = "red-one";
const OWN: &str = "red";
/// A tenant that exists, one that does not, and the one of callers who said nothing.
const OTHERS: [&str; 3] = ["blue", "grey", "default"];

fn requests(tenant: Option<&str>) -> [Request; 3] {
    let tenant = tenant.map(str::to_owned);
    let mut send = changed(message("complete"), |_| {});
    send.tenant.clone_from(&tenant);
    [
        Request::SendMessage(send),
        Request::GetTask(GetTask { tenant: tenant.clone(), id: "no-such-task".into(), history_length: None }),
        Request::GetExtendedCard(GetExtendedCard { tenant }),
    ]
}

fn ways(tenant: &str) -> Vec<(String, RawCall)> {
    let mut ways = Vec::new();
    for combination in Combination::ALL {
        for (mut request, naming) in requests(None).into_iter().zip(requests(Some(tenant))) {
            if let (Version::Original, Request::SendMessage(send)) = (combination.version, &mut request) {
                send.client_task_id = Some("named".into());
            }
            let operation = format!("{:?} over {}", request.operation(), combination.name());
            let Some(call) = RawCall::of(combination, &request) else { continue };
            ways.push((format!("{operation}, header"), call.clone().with("a2a-tenant", tenant)));
            if combination.binding == Binding::Rest {
                let path = format!("/{tenant}{}", call.path);
                ways.push((format!("{operation}, path"), RawCall { path, ..call.clone() }));
            }
            // Only 1.0 has a place for it in the call itself; over REST a GET has no body.
            if combination.version == Version::V1_0 && (combination.binding != Binding::Rest || !call.body.is_empty()) {
                ways.push((format!("{operation}, body"), RawCall::of(combination, &naming).expect("the same call")));
            }
        }
    }
    ways
}

fn refused_tenant(answer: &RawAnswer) -> bool {
    let said = |text: &str| text.contains("not the tenant of these credentials");
    answer.is_refusal()
        && (said(&answer.text()) || answer.header("grpc-message").is_some_and(|text| said(&text.replace("%20", " "))))
}

#[tokio::test]
async fn another_tenant_than_ones_own_is_an_error_whether_it_exists_or_not() {
    let town = Town::new("");
    let mut told = 0;
    let [existing, missing, default] = OTHERS.map(ways);
    for ((way, existing), (others, own)) in existing.into_iter().zip(missing.into_iter().zip(default).zip(ways(OWN))) {
        let ((_, missing), (_, default)) = others;
        let refused = town.ask(ME, existing).await.replacing("blue", "grey");
        assert!(refused_tenant(&refused), "{way}: {refused:?}");
        assert_eq!(refused, town.ask(ME, missing).await, "{way}");
        assert_eq!(refused, town.ask(ME, default).await.replacing("default", "grey"), "{way}");
        let own = town.ask(ME, own.1).await;
        assert!(!refused_tenant(&own), "{way}: {own:?}");
        told += 1;
    }
    println!("{told} ways to name a tenant");
    assert!(told > 30, "{told}");
}

#[tokio::test]
async fn two_names_for_the_tenant_of_one_call_must_agree() {
    let town = Town::new("");
    let [send, ..] = requests(Some(OWN));
    let call = RawCall::of(super::NEWEST, &send).expect("sending");
    assert!(!town.ask(ME, call.clone().with("a2a-tenant", OWN)).await.is_refusal());
    let differing = OTHERS.map(|other| call.clone().with("a2a-tenant", other));
    let mut answers = Vec::new();
    for call in differing {
        answers.push(town.ask(ME, call).await);
    }
    assert!(answers.iter().all(|answer| answer.is_refusal() && *answer == answers[0]), "{answers:?}");
}
