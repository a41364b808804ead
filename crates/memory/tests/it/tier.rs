//! What is put into a tier is found by its witness, by every node on it, and only as it was put in.

use std::fs;
use std::path::Path;

use chancery_memory::{MemoryConfig, MemoryError, Tier, VectorShape, Witness};

use crate::common::{DIM, config, file, id, incoming, publish, tier, vectors};

fn exact(vectors: &[Vec<f32>], query: &[f32], k: usize) -> Vec<u64> {
    let distance = |vector: &Vec<f32>| vector.iter().zip(query).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let mut places: Vec<usize> = (0..vectors.len()).collect();
    places.sort_by(|a, b| distance(&vectors[*a]).total_cmp(&distance(&vectors[*b])));
    places.into_iter().take(k).map(id).collect()
}

#[test]
fn a_second_node_finds_the_same_neighbours_by_the_witness() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (tier(folder.path()), tier(folder.path()));
    let vectors = vectors(7, 3000, DIM);
    let published = publish(&one, &vectors);
    assert_eq!((published.count, published.dim), (3000, DIM));
    let resolved = two.resolve(&published.witness, Some(&published.data_ref)).unwrap();
    assert_eq!((resolved.count, resolved.dim), (3000, DIM));
    let queries = [vectors[5].clone(), vectors[77].clone()];
    let (here, there) =
        (one.search(&published.witness, &queries, 3).unwrap(), two.search(&published.witness, &queries, 3).unwrap());
    assert_eq!(here, there);
    for (query, found) in queries.iter().zip(&here) {
        assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), exact(&vectors, query, 3));
    }
}

#[test]
fn the_same_vectors_have_one_witness_and_others_another() {
    let folder = tempfile::tempdir().unwrap();
    let tier = tier(folder.path());
    let first = publish(&tier, &vectors(1, 100, DIM));
    assert_eq!(publish(&tier, &vectors(1, 100, DIM)), first);
    let mut changed = vectors(1, 100, DIM);
    changed[99][15] += 0.25;
    assert_ne!(publish(&tier, &changed).witness, first.witness);
    assert_eq!(tier.witnesses().unwrap().len(), 2);
    assert_eq!(fs::read_dir(folder.path().join("incoming")).unwrap().count(), 0);
}

#[test]
fn a_bundle_that_somebody_hands_over_as_a_folder_is_resolved_from_the_tier() {
    let (folder, handed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tier = tier(folder.path());
    let published = publish(&tier, &vectors(3, 100, DIM));
    let sidecar = folder.path().join("bundles").join(published.witness.as_str()).join("table.rulake.json");
    fs::copy(sidecar, handed.path().join("table.rulake.json")).unwrap();
    assert_eq!(tier.warm_from_dir(handed.path()).unwrap().witness, published.witness);
}

/// Where a collection's vectors and bundle lie.
fn places(folder: &Path, witness: &Witness, data_ref: &str) -> (std::path::PathBuf, std::path::PathBuf) {
    let vectors = folder.join("vectors").join(data_ref.rsplit('/').next().unwrap());
    (vectors, folder.join("bundles").join(witness.as_str()).join("table.rulake.json"))
}

#[test]
fn one_changed_bit_of_the_vectors_is_noticed_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let published = publish(&tier(folder.path()), &vectors(11, 50, DIM));
    let (file, _) = places(folder.path(), &published.witness, &published.data_ref);
    let good = fs::read(&file).unwrap();
    for at in [0, 8, 16, 24, 40, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&file, bad).unwrap();
        let refused = tier(folder.path()).resolve(&published.witness, None).unwrap_err();
        assert!(matches!(refused, MemoryError::Tampered(_) | MemoryError::NotVectors(_)), "byte {at}: {refused:?}");
    }
    for cut in [0, 23, good.len() - 1] {
        fs::write(&file, &good[..cut]).unwrap();
        assert_eq!(tier(folder.path()).resolve(&published.witness, None).unwrap_err().code(), "tampered");
    }
    fs::write(&file, [&good[..], b"x"].concat()).unwrap();
    assert_eq!(tier(folder.path()).resolve(&published.witness, None).unwrap_err().code(), "tampered");
    fs::write(&file, good).unwrap();
    tier(folder.path()).resolve(&published.witness, None).unwrap();
}

#[test]
fn a_bundle_that_was_changed_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let one = publish(&tier(folder.path()), &vectors(1, 50, DIM));
    let other = publish(&tier(folder.path()), &vectors(2, 50, DIM));
    let (_, sidecar) = places(folder.path(), &one.witness, &one.data_ref);
    let good = fs::read_to_string(&sidecar).unwrap();
    let (_, of_other) = places(folder.path(), &other.witness, &other.data_ref);
    let changed = [
        good.replace("\"dim\": 16", "\"dim\": 8"),
        good.replace(&one.data_ref, &other.data_ref),
        good.replace(one.witness.as_str(), other.witness.as_str()),
        fs::read_to_string(of_other).unwrap(),
        "{}".to_owned(),
        String::new(),
    ];
    for bad in changed {
        assert_ne!(bad, good);
        fs::write(&sidecar, &bad).unwrap();
        assert_eq!(tier(folder.path()).resolve(&one.witness, None).unwrap_err().code(), "tampered", "{bad}");
    }
}

/// A bundle can be whole and still name a file that is not the tier's.
#[test]
fn a_well_made_bundle_that_points_out_of_the_tier_is_refused() {
    use ruvector_rulake::{Generation, RuLakeBundle};
    let folder = tempfile::tempdir().unwrap();
    let tier = tier(folder.path());
    let digest = "ab".repeat(32);
    let outside = [
        "file:///etc/passwd".to_owned(),
        format!("{}vectors/../../../etc/passwd", tier.url()),
        format!("{}vectors/../vectors/{digest}.ruvec", tier.url()),
        format!("file:///elsewhere/vectors/{digest}.ruvec"),
        format!("{}vectors/{digest}.ruvec?x", tier.url()),
        format!("http://127.0.0.1/vectors/{digest}.ruvec"),
        format!("data:,{digest}.ruvec"),
    ];
    for data_ref in outside {
        let bundle = RuLakeBundle::new(&data_ref, 16, 159, 20, Generation::Opaque(format!("sha256:{digest}")));
        let witness: Witness = bundle.rvf_witness.parse().unwrap();
        bundle.write_to_dir(folder.path().join("bundles").join(witness.as_str())).unwrap();
        assert_eq!(tier.resolve(&witness, None).unwrap_err().code(), "reference", "{data_ref}");
        assert_eq!(tier.resolve(&witness, Some(&data_ref)).unwrap_err().code(), "reference", "{data_ref}");
    }
}

#[test]
fn a_generation_that_is_not_the_digest_is_refused() {
    use ruvector_rulake::{Generation, RuLakeBundle};
    let folder = tempfile::tempdir().unwrap();
    let tier = tier(folder.path());
    let published = publish(&tier, &vectors(1, 50, DIM));
    for generation in [Generation::Num(7), Generation::Opaque("sha256:".into()), Generation::Opaque("ab".repeat(32))] {
        let bundle = RuLakeBundle::new(&published.data_ref, 16, 159, 20, generation);
        let witness: Witness = bundle.rvf_witness.parse().unwrap();
        bundle.write_to_dir(folder.path().join("bundles").join(witness.as_str())).unwrap();
        assert_eq!(tier.resolve(&witness, None).unwrap_err().code(), "tampered");
    }
}

#[cfg(unix)]
#[test]
fn links_and_what_never_ends_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let published = publish(&tier(folder.path()), &vectors(1, 50, DIM));
    let (file, sidecar) = places(folder.path(), &published.witness, &published.data_ref);
    for (place, target) in [(&file, "/dev/zero"), (&file, "/etc/passwd"), (&sidecar, "/dev/zero")] {
        let kept = fs::read(place).unwrap();
        fs::remove_file(place).unwrap();
        std::os::unix::fs::symlink(target, place).unwrap();
        assert_eq!(tier(folder.path()).resolve(&published.witness, None).unwrap_err().code(), "tampered", "{target}");
        fs::remove_file(place).unwrap();
        fs::write(place, kept).unwrap();
    }
}

#[test]
fn a_collection_over_the_limit_is_neither_taken_nor_read() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = vectors(1, 100, DIM);
    let bytes = VectorShape { count: 100, dim: DIM }.bytes();
    let limited = |limit| {
        let config = MemoryConfig { max_collection_bytes: limit, ..config(folder.path()) };
        Tier::open(&config).unwrap().unwrap()
    };
    let published = publish(&limited(bytes), &vectors);
    limited(bytes).resolve(&published.witness, None).unwrap();
    assert_eq!(limited(bytes - 1).resolve(&published.witness, None).unwrap_err().code(), "too_large");
    let narrow = limited(bytes - 1);
    // The header alone is enough to know.
    let mut early = narrow.begin().unwrap();
    assert_eq!(early.take(&file(&vectors)[..24]).unwrap_err().code(), "too_large");
    // One that says little and goes on for ever is stopped too.
    let mut endless = narrow.begin().unwrap();
    endless.take(&VectorShape { count: 1, dim: DIM }.header()).unwrap();
    let stopped = std::iter::repeat_n([0; 512], 100).try_for_each(|piece| endless.take(&piece));
    assert_eq!(stopped.unwrap_err().code(), "too_large");
    drop((early, endless));
    assert_eq!(fs::read_dir(folder.path().join("incoming")).unwrap().count(), 0);
}

#[test]
fn what_is_no_collection_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let tier = tier(folder.path());
    let good = file(&vectors(1, 10, DIM));
    let mut odd = good.clone();
    odd[32..36].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(incoming(&tier, &odd).is_err());
    assert!(incoming(&tier, b"ruvec1\0 not quite a header").is_err());
    for bad in [&good[..good.len() - 1], &good[..20], &[], &VectorShape { count: 0, dim: 1 }.header()] {
        let refused = tier.publish(incoming(&tier, bad).unwrap(), None).unwrap_err();
        assert_eq!(refused.code(), "not_vectors");
    }
    assert!(tier.witnesses().unwrap().is_empty());
}

#[test]
fn the_least_used_make_room_and_come_back_when_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = VectorShape { count: 200, dim: DIM }.bytes();
    let config = MemoryConfig { resident_bytes: 2 * bytes, ..config(folder.path()) };
    let tier = Tier::open(&config).unwrap().unwrap();
    let all: Vec<_> = (1..=3).map(|seed| (publish(&tier, &vectors(seed, 200, DIM)), vectors(seed, 200, DIM))).collect();
    for _ in 0..3 {
        for (published, vectors) in &all {
            let found = tier.search(&published.witness, &vectors[9..10], 1).unwrap();
            assert_eq!(found[0][0].id, id(9));
        }
    }
    let narrow = MemoryConfig { resident_bytes: bytes - 1, ..config };
    let narrow = Tier::open(&narrow).unwrap().unwrap();
    assert_eq!(narrow.resolve(&all[0].0.witness, None).unwrap_err().code(), "too_large");
}

#[test]
fn a_query_that_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tier = tier(folder.path());
    let published = publish(&tier, &vectors(1, 10, DIM));
    let witness = &published.witness;
    assert_eq!(tier.search(witness, &[vec![0.0; 15]], 1).unwrap_err().code(), "dimensions");
    assert_eq!(tier.search(witness, &[vec![f32::NAN; 16]], 1).unwrap_err().code(), "not_vectors");
    for k in [0, 1001] {
        assert_eq!(tier.search(witness, &[vec![0.0; 16]], k).unwrap_err().code(), "reference");
    }
    assert_eq!(tier.search(witness, &[vec![0.0; 16]], 1000).unwrap()[0].len(), 10);
    let nobody: Witness = "0".repeat(64).parse().unwrap();
    assert_eq!(tier.search(&nobody, &[vec![0.0; 16]], 1).unwrap_err().code(), "unknown_witness");
}

#[test]
fn nothing_is_left_of_a_collection_that_could_not_be_put_in() {
    let folder = tempfile::tempdir().unwrap();
    let tier = tier(folder.path());
    let held = publish(&tier, &vectors(8, 20, DIM));
    let place = folder.path().join("vectors").join(held.data_ref.rsplit('/').next().unwrap());
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    fs::write(place.join("in-the-way"), "").unwrap();
    let again = incoming(&tier, &file(&vectors(8, 20, DIM))).unwrap();
    assert_eq!(tier.publish(again, None).unwrap_err().code(), "tier");
    assert_eq!(fs::read_dir(folder.path().join("incoming")).unwrap().count(), 0);
}
