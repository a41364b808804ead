//! Who an agent is by its key.

use chancery_protocol::AgentId;
use keccak::Keccak;

/// SHAKE-256 of an Ed25519 public key, 32 bytes: the same key is the same agent, wherever it is met.
pub fn agent_id_from_pubkey(pubkey_ed25519: &[u8; 32]) -> AgentId {
    let mut state = [0_u64; 25];
    for (lane, bytes) in state.iter_mut().zip(pubkey_ed25519.as_chunks().0) {
        *lane = u64::from_le_bytes(*bytes);
    }
    // FIPS 202: the suffix of SHAKE and the padding. One block of 17 lanes holds the whole key, so the
    // permutation runs once.
    state[4] = 0x1f;
    state[16] = 0x80 << 56;
    Keccak::new().with_f1600(|permute| permute(&mut state));
    let mut digest = [0; 32];
    for (bytes, lane) in digest.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = lane.to_le_bytes();
    }
    AgentId::from_digest(&digest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shake::Shake256;
    use shake::digest::{ExtendableOutput as _, Update as _, XofReader as _};

    use super::*;

    proptest! {
        #[test]
        fn two_implementations_hash_a_key_alike(key in any::<[u8; 32]>()) {
            let mut digest = [0; 32];
            Shake256::default().chain(key).finalize_xof().read(&mut digest);
            prop_assert_eq!(agent_id_from_pubkey(&key), AgentId::from_digest(&digest));
        }
    }

    #[test]
    fn an_agent_id_is_shake_256_of_the_public_key() {
        // The public key of RFC 8032 §7.1, test 1; the digest was computed with another implementation.
        let key = [
            0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72,
            0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
        ];
        assert_eq!(agent_id_from_pubkey(&key).as_str(), "7cb16e94954c73e793776b730c4fa20fe747987ce43b49c66deb6b4aa49be50d");
        assert_eq!(agent_id_from_pubkey(&[0; 32]).as_str(), "f5977c8283546a63723bc31d2619124f11db4658643336741df81757d5ad3062");
    }
}
