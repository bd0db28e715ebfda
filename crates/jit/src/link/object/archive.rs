//! Static archives: which members are linked together.
//!
//! Members that need each other are one unit. So are members that define one weak symbol, so the choice among definitions does not depend on the
//! order of requests, and members that name one thread-local symbol, which has no address for others. Definitions of COMDAT groups are equal by the rules of C++, and join nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use object::read::archive::ArchiveFile;

use super::ObjectFile;
use super::error::{ObjectFileError, malformed};
use super::forms::Machine;
use super::read::{Member, Name};

/// A static archive. Members are read on request.
#[derive(Clone, Debug)]
pub struct Archive {
    bytes: Arc<[u8]>,
    /// Names and places of members.
    members: Vec<(String, Range<usize>)>,
    /// The member that defines a symbol; the first one, if there are several, and one that others see before one that is hidden.
    index: BTreeMap<String, usize>,
    /// Members that are linked together because they share a symbol, by member; those that are alone are not here.
    groups: BTreeMap<usize, Arc<[usize]>>,
}

impl Archive {
    /// Reads the members' names and definitions. A member that is not an object file for this machine defines nothing.
    pub fn parse(name: &str, bytes: impl Into<Arc<[u8]>>) -> Result<Archive, ObjectFileError> {
        let bytes: Arc<[u8]> = bytes.into();
        let archive = ArchiveFile::parse(&*bytes).map_err(|error| malformed(name, error))?;
        let (mut members, mut index, mut hidden) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        // Members by symbol, and whether it joins them.
        let mut sharers: BTreeMap<String, (Vec<usize>, bool)> = BTreeMap::new();
        for member in archive.members() {
            let member = member.map_err(|error| malformed(name, error))?;
            let (from, size) = member.file_range();
            let range = from as usize..from.saturating_add(size) as usize;
            let Some(content) = bytes.get(range.clone()) else {
                return Err(malformed(name, "a member ends beyond the file, or is not in it"));
            };
            let text = String::from_utf8_lossy(member.name()).into_owned();
            let number = members.len();
            members.push((text, range));
            for symbol in Member::names(content, Machine::HOST).unwrap_or_default() {
                let Name { name, is_defined, is_hidden, is_weak, is_in_group, is_tls } = symbol;
                if is_defined {
                    let names = if is_hidden { &mut hidden } else { &mut index };
                    names.entry(name.clone()).or_insert(number);
                }
                if is_defined && !is_in_group || is_tls {
                    let (by, joins) = sharers.entry(name).or_default();
                    by.push(number);
                    *joins |= is_weak || is_tls;
                }
            }
        }
        let shared = sharers.into_values().filter_map(|(by, joins)| joins.then_some(by));
        let groups = groups(members.len(), shared);
        for (name, number) in hidden {
            index.entry(name).or_insert(number);
        }
        Ok(Archive { bytes, members, index, groups })
    }

    /// The member that defines a symbol.
    pub fn member_with(&self, symbol: &str) -> Option<usize> {
        self.index.get(symbol).copied()
    }

    /// Reads a member, and those that it needs and that need it, and those that share a symbol with one, which are linked together. Says which
    /// they are.
    pub fn component(&self, number: usize) -> Result<(ObjectFile, BTreeSet<usize>), ObjectFileError> {
        let mut files: BTreeMap<usize, ObjectFile> = BTreeMap::new();
        let mut callers: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let mut open = vec![number];
        while let Some(at) = open.pop() {
            if files.contains_key(&at) {
                continue;
            }
            let file = self.member(at)?;
            for needed in file.undefined().filter_map(|name| self.member_with(name)) {
                callers.entry(needed).or_default().insert(at);
                open.push(needed);
            }
            for &other in self.groups.get(&at).into_iter().flat_map(|group| group.iter()) {
                callers.entry(at).or_default().insert(other);
                open.push(other);
            }
            files.insert(at, file);
        }
        let mut component = BTreeSet::new();
        let mut open = vec![number];
        while let Some(at) = open.pop() {
            if component.insert(at) {
                open.extend(callers.get(&at).into_iter().flatten());
            }
        }
        files.retain(|at, _| component.contains(at));
        Ok((ObjectFile::together(files.into_values())?, component))
    }

    /// Reads a member.
    fn member(&self, number: usize) -> Result<ObjectFile, ObjectFileError> {
        let member =
            self.members.get(number).and_then(|(name, range)| Some((name, self.bytes.get(range.clone())?)));
        let (name, bytes) = member.ok_or_else(|| malformed("archive", "there is no such member"))?;
        // Members may have one name.
        ObjectFile::parse(&format!("{name}({number})"), bytes)
    }
}

/// The classes of members that sets with members in common make up; by member, without the members that are alone.
fn groups(count: usize, sets: impl Iterator<Item = Vec<usize>>) -> BTreeMap<usize, Arc<[usize]>> {
    /// The first of a member's class, as far as it is known.
    fn first(leads: &mut [usize], mut at: usize) -> usize {
        while leads[at] != at {
            leads[at] = leads[leads[at]];
            at = leads[at];
        }
        at
    }
    let mut leads: Vec<usize> = (0..count).collect();
    for set in sets {
        for &other in set.iter().skip(1) {
            let (a, b) = (first(&mut leads, set[0]), first(&mut leads, other));
            leads[a.max(b)] = a.min(b);
        }
    }
    let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in 0..count {
        classes.entry(first(&mut leads, at)).or_default().push(at);
    }
    let mut groups = BTreeMap::new();
    for class in classes.into_values().filter(|class| class.len() > 1) {
        let class: Arc<[usize]> = class.into();
        groups.extend(class.iter().map(|&at| (at, class.clone())));
    }
    groups
}
