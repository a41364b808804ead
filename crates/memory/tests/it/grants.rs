//! Memory opens to whom it was granted, for what, until when, and to nobody else.

use std::time::Duration;

use chancery_identity::keys::{KeyRing, MemoryGrants, Receipts, SigningKey};
use chancery_identity::{Algorithm, KeyUse};
use chancery_memory::{Capability, GrantRefusal, IssuerKey, MemoryConfig, MemoryGate, MemoryRequest, PublishedCollection};
use chancery_protocol::{AgentId, Timestamp};

use crate::common::{DIM, config, publish, tier, vectors};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
const HOUR: Duration = Duration::from_secs(3600);

struct GrantScene {
    folder: tempfile::TempDir,
    ring: KeyRing,
    gate: MemoryGate,
    held: PublishedCollection,
}

fn scene() -> GrantScene {
    let folder = tempfile::tempdir().unwrap();
    let tier = tier(folder.path());
    let held = publish(&tier, &vectors(5, 50, DIM));
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::MemoryGrants, None, Algorithm::EdDsa, Timestamp::from_micros(0)).unwrap();
    let gate = MemoryGate::new(tier, &config(folder.path()));
    GrantScene { folder, ring, gate, held }
}

fn agent(digit: u8) -> AgentId {
    AgentId::from_digest(&[digit; 32])
}

impl GrantScene {
    fn grant(&self, capabilities: &[Capability]) -> String {
        let witness = Some(self.held.witness.clone());
        let grant = self.gate.draw_up(witness, capabilities.to_vec(), agent(1), None, NOW, HOUR);
        self.gate.grants(&self.ring).issue(&grant).unwrap()
    }

    fn ask<'a>(&'a self, grant: Option<&'a str>, grantee: &'a [AgentId]) -> MemoryRequest<'a> {
        MemoryRequest {
            witness: &self.held.witness,
            data_ref: Some(&self.held.data_ref),
            handed_for: None,
            grant,
            grantee,
            presenter: None,
            now: NOW,
        }
    }

    fn refusal(&self, ask: &MemoryRequest<'_>) -> &'static str {
        self.gate.resolve(ask, &self.ring).unwrap_err().code()
    }
}

#[test]
fn a_grant_opens_what_it_says_and_nothing_else() {
    let scene = scene();
    let [one, two] = [[agent(1)], [agent(2)]];
    let read = scene.grant(&[Capability::Read]);
    assert_eq!(scene.refusal(&scene.ask(None, &one)), "no_grant");
    assert_eq!(scene.refusal(&scene.ask(Some(&read), &two)), "other_grantee");
    assert_eq!(scene.refusal(&scene.ask(Some(&read), &[])), "other_grantee");
    assert_eq!(scene.gate.resolve(&scene.ask(Some(&read), &one), &scene.ring).unwrap().count, 50);
    let query = [vec![0.0; DIM as usize]];
    let searched = scene.gate.search(&scene.ask(Some(&read), &one), &query, 1, &scene.ring);
    assert_eq!(searched.unwrap_err().to_string(), GrantRefusal::Capability("search").to_string());
    let search = scene.grant(&[Capability::Search]);
    assert_eq!(scene.refusal(&scene.ask(Some(&search), &one)), "capability");
    assert_eq!(scene.gate.search(&scene.ask(Some(&search), &one), &query, 3, &scene.ring).unwrap()[0].len(), 3);
}

#[test]
fn a_grant_ends_at_its_moment() {
    let scene = scene();
    let one = [agent(1)];
    let read = scene.grant(&[Capability::Read]);
    let at = |now| MemoryRequest { now, ..scene.ask(Some(&read), &one) };
    assert_eq!(scene.refusal(&at(NOW + HOUR)), "expired");
    scene.gate.resolve(&at(Timestamp::from_micros((NOW + HOUR).micros() - 1)), &scene.ring).unwrap();
    assert_eq!(scene.refusal(&at(Timestamp::from_micros(NOW.micros() - 30_000_001))), "not_yet");
    let long = scene.gate.draw_up(None, vec![Capability::Read], agent(1), None, NOW, HOUR * 24 * 365);
    assert_eq!(long.expires_at, NOW + HOUR * 24 * 30);
}

#[test]
fn what_was_revoked_stays_revoked_on_every_node_and_after_a_restart() {
    let scene = scene();
    let one = [agent(1)];
    let read = scene.grant(&[Capability::Read]);
    scene.gate.resolve(&scene.ask(Some(&read), &one), &scene.ring).unwrap();
    let book = scene.gate.grants(&scene.ring);
    let [(grant, false)] = &book.list().unwrap()[..] else { panic!() };
    book.revoke(&grant.id, NOW).unwrap();
    assert_eq!(scene.refusal(&scene.ask(Some(&read), &one)), "revoked");
    assert!(book.list().unwrap()[0].1);
    let again = MemoryGate::new(tier(scene.folder.path()), &config(scene.folder.path()));
    assert_eq!(again.resolve(&scene.ask(Some(&read), &one), &scene.ring).unwrap_err().code(), "revoked");
    for bad in ["", "../grants/x", "../../etc/passwd"] {
        assert_eq!(book.revoke(bad, NOW).unwrap_err().code(), "reference", "{bad}");
    }
}

#[test]
fn a_grant_is_presented_whole_or_by_its_id() {
    let scene = scene();
    let one = [agent(1)];
    let text = scene.grant(&[Capability::Read]);
    let book = scene.gate.grants(&scene.ring);
    let id = book.list().unwrap()[0].0.id.clone();
    for presented in [&text, &id] {
        assert!(scene.gate.resolve(&scene.ask(Some(presented), &one), &scene.ring).is_ok());
    }
    let other = scene.gate.draw_up(None, vec![Capability::Read], agent(2), None, NOW, HOUR);
    book.issue(&other).unwrap();
    assert_eq!(scene.refusal(&scene.ask(Some(&other.id), &one)), "other_grantee");
    // A file under another id is not the grant of that id.
    let place = |id: &str| scene.folder.path().join("grants").join(id);
    std::fs::copy(place(&id), place(&other.id)).unwrap();
    assert_eq!(scene.refusal(&scene.ask(Some(&other.id), &one)), "malformed_grant");
    let nobody = "01a1e0cd-a55f-7395-a9b2-a22216016c43";
    assert_eq!(scene.refusal(&scene.ask(Some(nobody), &one)), "no_grant");
}

#[test]
fn another_hand_than_the_one_named_cannot_pass_a_grant_on() {
    let scene = scene();
    let one = [agent(1)];
    let grant = scene.gate.draw_up(None, vec![Capability::Read], agent(1), Some(agent(3)), NOW, HOUR);
    let text = scene.gate.grants(&scene.ring).issue(&grant).unwrap();
    let (right, wrong) = (agent(3), agent(4));
    for presenter in [None, Some(&wrong), Some(&one[0])] {
        assert_eq!(scene.refusal(&MemoryRequest { presenter, ..scene.ask(Some(&text), &one) }), "other_presenter");
    }
    let ask = MemoryRequest { presenter: Some(&right), ..scene.ask(Some(&text), &one) };
    assert!(scene.gate.resolve(&ask, &scene.ring).is_ok());
}

#[test]
fn a_grant_for_another_witness_or_shard_does_not_open_this_one() {
    let scene = scene();
    let one = [agent(1)];
    let other = publish(scene.gate.tier(), &vectors(6, 50, DIM));
    let mut grant = scene.gate.draw_up(Some(other.witness), vec![Capability::Read], agent(1), None, NOW, HOUR);
    let elsewhere = scene.gate.grants(&scene.ring).issue(&grant).unwrap();
    assert_eq!(scene.refusal(&scene.ask(Some(&elsewhere), &one)), "other_witness");
    grant.witness = None;
    "staging".clone_into(&mut grant.shard);
    let staged = scene.gate.grants(&scene.ring).issue(&grant).unwrap();
    assert_eq!(scene.refusal(&scene.ask(Some(&staged), &one)), "other_shard");
}

#[test]
fn a_changed_or_foreign_grant_is_nothing() {
    let scene = scene();
    let one = [agent(1)];
    let good = scene.grant(&[Capability::Read]);
    for at in 0..good.len() {
        let mut bad = good.clone().into_bytes();
        bad[at] = if bad[at] == b'A' { b'B' } else { b'A' };
        let bad = String::from_utf8(bad).unwrap();
        // The last letter of a base64 text has bits that stand for nothing.
        let refused = scene.gate.resolve(&scene.ask(Some(&bad), &one), &scene.ring);
        assert!(refused.is_err(), "byte {at}");
    }
    let too_long = "a".repeat(5000);
    for bad in ["", ".", "..", "a.b.c", too_long.as_str()] {
        assert_eq!(scene.refusal(&scene.ask(Some(bad), &one)), "malformed_grant", "{bad}");
    }
    let mut stranger = KeyRing::default();
    stranger.ensure(KeyUse::MemoryGrants, None, Algorithm::EdDsa, Timestamp::from_micros(0)).unwrap();
    let grant = scene.gate.draw_up(None, vec![Capability::Read], agent(1), None, NOW, HOUR);
    let foreign = scene.gate.grants(&stranger).issue(&grant).unwrap();
    assert_eq!(scene.refusal(&scene.ask(Some(&foreign), &one)), "unknown_issuer");
    let key = stranger.signing::<MemoryGrants>(None, Algorithm::EdDsa, NOW).unwrap();
    let trusting = MemoryConfig { issuers: vec![IssuerKey(key.public().clone())], ..config(scene.folder.path()) };
    let trusting = MemoryGate::new(scene.gate.tier().clone(), &trusting);
    assert!(trusting.resolve(&scene.ask(Some(&foreign), &one), &scene.ring).is_ok());
}

/// The same key, used for something else, signs no grants.
#[test]
fn a_signature_made_for_a_receipt_is_not_one_of_a_grant() {
    let scene = scene();
    let seed = "11".repeat(32);
    let mut ring = KeyRing::default();
    ring.give(&SigningKey::<MemoryGrants>::from_seed(&seed).unwrap(), None, NOW).unwrap();
    let good = {
        let grant = scene.gate.draw_up(None, vec![Capability::Read], agent(1), None, NOW, HOUR);
        scene.gate.grants(&ring).issue(&grant).unwrap()
    };
    let one = [agent(1)];
    assert!(scene.gate.resolve(&scene.ask(Some(&good), &one), &ring).is_ok());
    let (signed, _) = good.rsplit_once('.').unwrap();
    let receipt = SigningKey::<Receipts>::from_seed(&seed).unwrap().sign(signed.as_bytes()).unwrap();
    use base64::Engine as _;
    let forged = format!("{signed}.{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(receipt));
    assert_eq!(scene.gate.resolve(&scene.ask(Some(&forged), &one), &ring).unwrap_err().code(), "bad_signature");
}

#[test]
fn who_may_write_publishes_a_new_generation_and_may_do_with_it_what_it_might_before() {
    let scene = scene();
    let one = [agent(1)];
    let new = vec![(1000, vec![9.0; DIM as usize]), (7, vec![-9.0; DIM as usize])];
    for (can, code) in [(vec![Capability::Read, Capability::Search], "capability"), (vec![Capability::Write], "")] {
        let grant = scene.grant(&can);
        let written = scene.gate.write(&scene.ask(Some(&grant), &one), &new, &scene.ring);
        assert_eq!(written.as_ref().err().map_or("", |error| error.code()), code);
    }
    let all = scene.grant(&Capability::ALL);
    let stranger = [agent(2)];
    let refused = scene.gate.write(&scene.ask(Some(&all), &stranger), &new, &scene.ring).unwrap_err();
    assert_eq!(refused.code(), "other_grantee");
    for (wrong, code) in
        [(vec![], "reference"), (vec![(1, vec![0.5; 3])], "dimensions"), (vec![(1, vec![f32::NAN; 16])], "not_vectors")]
    {
        assert_eq!(scene.gate.write(&scene.ask(Some(&all), &one), &wrong, &scene.ring).unwrap_err().code(), code);
    }
    let written = scene.gate.write(&scene.ask(Some(&all), &one), &new, &scene.ring).unwrap();
    assert_eq!(written.published.count, 51, "one took the place of another, one is more");
    assert_ne!(written.published.witness, scene.held.witness);
    let of_new = |grant| MemoryRequest {
        witness: &written.published.witness,
        data_ref: Some(&written.published.data_ref),
        ..scene.ask(Some(grant), &one)
    };
    let near = |id: u64, numbers: f32| {
        let found = scene.gate.search(&of_new(&written.grant), &[vec![numbers; DIM as usize]], 1, &scene.ring).unwrap();
        assert_eq!(found[0][0].id, id);
    };
    near(1000, 9.0);
    near(7, -9.0);
    assert_eq!(scene.gate.resolve(&scene.ask(Some(&all), &one), &scene.ring).unwrap().count, 50, "the old one stays");
    assert_eq!(scene.gate.resolve(&of_new(&all), &scene.ring).unwrap_err().code(), "other_witness");
    let again = scene.gate.write(&of_new(&written.grant), &new[..1], &scene.ring).unwrap();
    assert_eq!(again.published.witness, written.published.witness, "nothing is new");
    // What was taken back takes along all that was written with it.
    let first = scene.gate.grants(&scene.ring).open(&all, NOW).unwrap();
    scene.gate.grants(&scene.ring).revoke(&first.id, NOW).unwrap();
    for grant in [&all, &written.grant, &again.grant] {
        assert_eq!(scene.gate.check(&of_new(grant), Capability::Write, &scene.ring).unwrap_err().code(), "revoked");
    }
    assert!(scene.gate.grants(&scene.ring).list().unwrap().iter().filter(|(grant, _)| !grant.after.is_empty()).count() >= 3);
}

#[test]
fn no_grant_counts_for_longer_than_this_node_would_give_one() {
    let scene = scene();
    let one = [agent(1)];
    let mut grant = scene.gate.draw_up(None, vec![Capability::Read], agent(1), None, NOW, HOUR);
    let longest = Duration::from_secs(MemoryConfig::default().max_grant_hours * 3600);
    grant.expires_at = NOW + longest + HOUR;
    let text = scene.gate.grants(&scene.ring).issue(&grant).unwrap();
    let at = |now| MemoryRequest { now, ..scene.ask(Some(&text), &one) };
    assert!(scene.gate.resolve(&at(NOW + (longest - Duration::from_micros(1))), &scene.ring).is_ok());
    assert_eq!(scene.refusal(&at(NOW + longest)), "expired");
}

#[test]
fn what_is_handed_over_for_less_than_was_granted_is_good_for_no_more() {
    let scene = scene();
    let one = [agent(1)];
    let all = scene.grant(&Capability::ALL);
    for (handed, taken) in [(vec!["read".to_owned()], [true, false, false]), (vec![], [false; 3])] {
        let ask = MemoryRequest { handed_for: Some(&handed), ..scene.ask(Some(&all), &one) };
        for (needs, taken) in Capability::ALL.into_iter().zip(taken) {
            let code = scene.gate.check(&ask, needs, &scene.ring).map_or_else(|error| error.code(), |_| "");
            assert_eq!(code, if taken { "" } else { "handed_for" }, "{needs} of {handed:?}");
        }
    }
}
