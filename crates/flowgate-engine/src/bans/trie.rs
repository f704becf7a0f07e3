//! A map by 64-bit hashes whose versions share their unchanged parts: a copy of the map is two words.
//!
//! State      A tree of 16 children a branch. Each level takes the next four bits of the hash. A leaf holds the entries
//!            of one hash, which is a single entry unless two hashes collide.
//! Bound      A change copies the branches on one path: about `log16(entries)` branches of 16 children.
//! Invariant  A branch has at least two children, or one child that is a branch. An emptied map has no branches.

use std::sync::Arc;

use smallvec::SmallVec;

const CHILDREN: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Trie<T> {
    root: Node<T>,
}

#[derive(Debug)]
enum Node<T> {
    Empty,
    Leaf(Arc<Leaf<T>>),
    Branch(Arc<[Node<T>; CHILDREN]>),
}

#[derive(Clone, Debug)]
struct Leaf<T> {
    hash: u64,
    entries: SmallVec<[T; 1]>,
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Node<T> {
        match self {
            Node::Empty => Node::Empty,
            Node::Leaf(leaf) => Node::Leaf(Arc::clone(leaf)),
            Node::Branch(children) => Node::Branch(Arc::clone(children)),
        }
    }
}

impl<T> Default for Trie<T> {
    fn default() -> Trie<T> {
        Trie { root: Node::Empty }
    }
}

impl<T> Trie<T> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.root, Node::Empty)
    }

    /// The entry of that hash that `is_it` accepts.
    pub(super) fn get(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let (mut node, mut depth) = (&self.root, 0);
        loop {
            match node {
                Node::Branch(children) => (node, depth) = (&children[child(hash, depth)], depth + 1),
                Node::Leaf(leaf) if leaf.hash == hash => return leaf.entries.iter().find(|entry| is_it(entry)),
                Node::Leaf(_) | Node::Empty => return None,
            }
        }
    }

    /// Calls `visit` with every entry, in no particular order.
    pub(super) fn for_each<'t>(&'t self, visit: &mut impl FnMut(&'t T)) {
        self.root.for_each(visit);
    }
}

impl<T: Clone> Trie<T> {
    /// Puts an entry in the place of the one that `is_it` accepts, or beside the others.
    pub(super) fn insert(&mut self, hash: u64, entry: T, is_it: impl Fn(&T) -> bool) {
        self.root.insert(0, hash, entry, &is_it);
    }

    /// Removes the entry of that hash that `is_it` accepts.
    pub(super) fn remove(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) {
        // Looks for the entry first, so that no path is copied if there is nothing to remove.
        if self.get(hash, &is_it).is_some() {
            self.root.remove(0, hash, &is_it);
        }
    }
}

impl<T> Node<T> {
    fn for_each<'t>(&'t self, visit: &mut impl FnMut(&'t T)) {
        match self {
            Node::Empty => {}
            Node::Leaf(leaf) => leaf.entries.iter().for_each(visit),
            Node::Branch(children) => children.iter().for_each(|child| child.for_each(visit)),
        }
    }
}

impl<T: Clone> Node<T> {
    fn insert(&mut self, depth: u32, hash: u64, entry: T, is_it: &impl Fn(&T) -> bool) {
        match self {
            Node::Empty => *self = Node::Leaf(Arc::new(Leaf { hash, entries: SmallVec::from_iter([entry]) })),
            Node::Leaf(leaf) if leaf.hash == hash => {
                let entries = &mut Arc::make_mut(leaf).entries;
                match entries.iter_mut().find(|entry| is_it(entry)) {
                    Some(found) => *found = entry,
                    None => entries.push(entry),
                }
            }
            Node::Leaf(leaf) => {
                // Two different hashes part within 16 levels.
                let mut children = [const { Node::Empty }; CHILDREN];
                children[child(leaf.hash, depth)] = Node::Leaf(Arc::clone(leaf));
                children[child(hash, depth)].insert(depth + 1, hash, entry, is_it);
                *self = Node::Branch(Arc::new(children));
            }
            Node::Branch(children) => {
                Arc::make_mut(children)[child(hash, depth)].insert(depth + 1, hash, entry, is_it);
            }
        }
    }

    fn remove(&mut self, depth: u32, hash: u64, is_it: &impl Fn(&T) -> bool) {
        match self {
            Node::Empty => {}
            Node::Leaf(leaf) if leaf.entries.len() == 1 => *self = Node::Empty,
            Node::Leaf(leaf) => Arc::make_mut(leaf).entries.retain(|entry| !is_it(entry)),
            Node::Branch(children) => {
                let children = Arc::make_mut(children);
                children[child(hash, depth)].remove(depth + 1, hash, is_it);
                let mut left = children.iter().filter(|child| !matches!(child, Node::Empty));
                match (left.next(), left.next()) {
                    (None, _) => *self = Node::Empty,
                    (Some(leaf @ Node::Leaf(_)), None) => *self = leaf.clone(),
                    _ => {}
                }
            }
        }
    }
}

#[inline]
fn child(hash: u64, depth: u32) -> usize {
    // Below the last level all hashes are equal, so there are no branches.
    (hash.checked_shr(4 * depth).unwrap_or(0) % CHILDREN as u64) as usize
}

#[cfg(test)]
impl<T> Trie<T> {
    /// The number of branches and leaves that this version does not share with an older one.
    pub(super) fn copied_since(&self, older: &Trie<T>) -> usize {
        self.root.copied_since(&older.root)
    }
}

#[cfg(test)]
impl<T> Node<T> {
    fn copied_since(&self, older: &Node<T>) -> usize {
        match (self, older) {
            (Node::Empty, _) => 0,
            (Node::Leaf(leaf), Node::Leaf(older)) if Arc::ptr_eq(leaf, older) => 0,
            // A branch with a single leaf is replaced by that leaf.
            (Node::Leaf(leaf), Node::Branch(older)) if older.iter().any(|child| child.is_leaf(leaf)) => 0,
            (Node::Leaf(_), _) => 1,
            (Node::Branch(children), Node::Branch(older)) if Arc::ptr_eq(children, older) => 0,
            (Node::Branch(children), Node::Branch(older)) => {
                1 + children.iter().zip(older.iter()).map(|(child, older)| child.copied_since(older)).sum::<usize>()
            }
            // The split leaf is one or more levels further down.
            (Node::Branch(children), older) => {
                1 + children.iter().map(|child| child.copied_since(older)).sum::<usize>()
            }
        }
    }

    fn is_leaf(&self, leaf: &Arc<Leaf<T>>) -> bool {
        matches!(self, Node::Leaf(found) if Arc::ptr_eq(found, leaf))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Hashes of few bits collide, and share long paths.
        #[test]
        fn a_trie_holds_what_a_map_holds_and_older_versions_stay(
            steps in proptest::collection::vec((0..40_u32, any::<bool>(), any::<u8>()), 0..200),
        ) {
            let hash = |key: u32| u64::from(key % 5) << (4 * (key % 16));
            let (mut trie, mut map): (Trie<(u32, u8)>, BTreeMap<u32, u8>) = Default::default();
            let mut versions = vec![(trie.clone(), map.clone())];
            for (key, inserts, value) in steps {
                let is_it = |entry: &(u32, u8)| entry.0 == key;
                if inserts {
                    trie.insert(hash(key), (key, value), is_it);
                    map.insert(key, value);
                } else {
                    trie.remove(hash(key), is_it);
                    map.remove(&key);
                }
                versions.push((trie.clone(), map.clone()));
            }
            for (trie, map) in versions {
                let mut entries = BTreeMap::new();
                trie.for_each(&mut |&(key, value)| assert!(entries.insert(key, value).is_none()));
                prop_assert_eq!(&entries, &map);
                prop_assert_eq!(trie.is_empty(), map.is_empty());
                for key in 0..40 {
                    let found = trie.get(hash(key), |entry| entry.0 == key);
                    prop_assert_eq!(found.map(|entry| entry.1), map.get(&key).copied());
                }
            }
        }
    }
}
