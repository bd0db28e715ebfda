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
    /// The members that each needs: they define a symbol that it names, or share one with it.
    needs: Vec<BTreeSet<usize>>,
}

impl Archive {
    /// Reads the members' names and definitions. A member that is not an object file for this machine defines nothing.
    pub fn parse(name: &str, bytes: impl Into<Arc<[u8]>>) -> Result<Archive, ObjectFileError> {
        let bytes: Arc<[u8]> = bytes.into();
        let archive = ArchiveFile::parse(&*bytes).map_err(|error| malformed(name, error))?;
        let (mut members, mut index, mut hidden) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        // Members by symbol, and whether it joins them.
        let mut sharers: BTreeMap<String, (Vec<usize>, bool)> = BTreeMap::new();
        let mut wanted: Vec<(usize, String)> = Vec::new();
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
                } else {
                    wanted.push((number, name.clone()));
                }
                if is_defined && !is_in_group || is_tls {
                    let (by, joins) = sharers.entry(name).or_default();
                    by.push(number);
                    *joins |= is_weak || is_tls;
                }
            }
        }
        for (name, number) in hidden {
            index.entry(name).or_insert(number);
        }
        let mut needs = vec![BTreeSet::new(); members.len()];
        for (number, name) in wanted {
            needs[number].extend(index.get(&name));
        }
        for (by, _) in sharers.into_values().filter(|(_, joins)| *joins) {
            for (&one, &next) in by.iter().zip(by.iter().cycle().skip(1)) {
                needs[one].insert(next);
            }
        }
        Ok(Archive { bytes, members, index, needs })
    }

    /// The member that defines a symbol.
    pub fn member_with(&self, symbol: &str) -> Option<usize> {
        self.index.get(symbol).copied()
    }

    /// Reads a member together with the members that it needs and that need it, which are linked together. Returns their
    /// numbers as well.
    pub fn component(&self, number: usize) -> Result<(ObjectFile, BTreeSet<usize>), ObjectFileError> {
        let mut callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let (mut reached, mut open) = (BTreeSet::new(), vec![number]);
        while let Some(at) = open.pop() {
            if reached.insert(at) {
                for &needed in self.needs.get(at).into_iter().flatten() {
                    callers.entry(needed).or_default().push(at);
                    open.push(needed);
                }
            }
        }
        let (mut component, mut open) = (BTreeSet::new(), vec![number]);
        while let Some(at) = open.pop() {
            if component.insert(at) {
                open.extend(callers.get(&at).into_iter().flatten());
            }
        }
        let files = component.iter().map(|&at| self.member(at)).collect::<Result<Vec<_>, _>>()?;
        Ok((ObjectFile::together(files)?, component))
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
