//! The Merkle tree of RFC 6962 (2.1) over the hashes of a segment's entries.

use super::{Hash, sha256};

pub fn leaf(entry: &Hash) -> Hash {
    let mut tagged = [0; 33];
    tagged[1..].copy_from_slice(entry);
    sha256(&tagged)
}

fn node(left: &Hash, right: &Hash) -> Hash {
    let mut tagged = [1; 65];
    tagged[1..33].copy_from_slice(left);
    tagged[33..].copy_from_slice(right);
    sha256(&tagged)
}

/// A tree that grows at its right edge: the roots of its full subtrees, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    roots: Vec<Hash>,
}

impl Frontier {
    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn push(&mut self, entry: &Hash) {
        let mut hash = leaf(entry);
        // Each full subtree of the same size to the left joins the new one.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.roots.pop() {
                hash = node(&left, &hash);
            }
        }
        self.roots.push(hash);
        self.size += 1;
    }

    /// Of an empty tree it is the digest of nothing.
    pub fn root(&self) -> Hash {
        let folded = self.roots.iter().rev().copied().reduce(|right, left| node(&left, &right));
        folded.unwrap_or_else(|| sha256(b""))
    }
}

/// A whole tree, to find ways in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerkleTree {
    /// Of each level the nodes from left to right; one without a neighbour stands in the level above as it is.
    levels: Vec<Vec<Hash>>,
}

impl MerkleTree {
    pub fn of(entries: &[Hash]) -> Self {
        let mut levels = vec![entries.iter().map(leaf).collect::<Vec<_>>()];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let join = |pair: &[Hash]| match pair {
                [left, right] => node(left, right),
                alone => alone[0],
            };
            levels.push(below.chunks(2).map(join).collect());
        }
        Self { levels }
    }

    /// The way from the entry at `place` to the root.
    pub fn path(&self, place: usize) -> Vec<Hash> {
        let neighbours = self.levels.iter().zip(0_u32..).map(|(level, height)| level.get((place >> height) ^ 1));
        neighbours.flatten().copied().collect()
    }
}

pub fn root(entries: &[Hash]) -> Hash {
    let mut tree = Frontier::default();
    entries.iter().for_each(|entry| tree.push(entry));
    tree.root()
}

/// The root that a way leads to from an entry at a place in a tree of that size. Nothing if no tree of that size has such a way.
pub fn root_of_path(entry: &Hash, place: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    if place >= size {
        return None;
    }
    // RFC 9162, 2.1.3.2.
    let (mut at, mut last) = (place, size - 1);
    let mut hash = leaf(entry);
    for sibling in path {
        if last == 0 {
            return None;
        }
        if at & 1 == 1 || at == last {
            hash = node(sibling, &hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = node(&hash, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::hex;

    fn entries(count: u64) -> Vec<Hash> {
        (0..count).map(|number| sha256(&number.to_be_bytes())).collect()
    }

    /// The definition of RFC 6962, word for word.
    fn by_definition(entries: &[Hash]) -> Hash {
        match entries {
            [] => sha256(b""),
            [entry] => leaf(entry),
            _ => {
                let (left, right) = entries.split_at(largest_power_below(entries.len()));
                node(&by_definition(left), &by_definition(right))
            }
        }
    }

    fn largest_power_below(size: usize) -> usize {
        let mut power = 1;
        while power * 2 < size {
            power *= 2;
        }
        power
    }

    /// The definition of RFC 6962, word for word.
    fn path_by_definition(place: usize, entries: &[Hash]) -> Vec<Hash> {
        if entries.len() <= 1 {
            return Vec::new();
        }
        let middle = largest_power_below(entries.len());
        let (left, right) = entries.split_at(middle);
        if place < middle {
            let mut way = path_by_definition(place, left);
            way.push(by_definition(right));
            way
        } else {
            let mut way = path_by_definition(place - middle, right);
            way.push(by_definition(left));
            way
        }
    }

    #[test]
    fn the_growing_edge_has_the_root_the_definition_gives() {
        assert_eq!(hex(&root(&[])), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        for count in 0..70 {
            assert_eq!(root(&entries(count)), by_definition(&entries(count)), "{count}");
        }
    }

    #[test]
    fn every_entry_has_a_way_to_the_root_and_no_other_entry_size_or_place_has_it() {
        for count in 1..40_u64 {
            let entries = entries(count);
            let (root, tree) = (root(&entries), MerkleTree::of(&entries));
            for place in 0..count {
                let entry = &entries[place as usize];
                let way = tree.path(place as usize);
                assert_eq!(way, path_by_definition(place as usize, &entries));
                assert_eq!(root_of_path(entry, place, count, &way), Some(root), "{place} of {count}");
                assert_ne!(root_of_path(&sha256(b"other"), place, count, &way), Some(root));
                if count > 1 {
                    let neighbour = if place == 0 { 1 } else { place - 1 };
                    assert_ne!(root_of_path(entry, neighbour, count, &way), Some(root), "{place} of {count}");
                    assert_ne!(root_of_path(entry, place, count, &way[1..]), Some(root));
                }
                let longer = [&way[..], &[root]].concat();
                assert_ne!(root_of_path(entry, place, count, &longer), Some(root));
                assert_eq!(root_of_path(entry, count, count, &way), None);
            }
        }
    }
}
