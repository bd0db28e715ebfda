//! The ordered index of loaded code: from an address to unit, function, code offset and line.
//!
//! ```text
//!   CodeMap   start ──► CodeUnit   ┌─────────────┬───────────────────────────┐
//!                                  │ functions   │ sorted by offset          │  offset, size, frame, name, lines
//!                                  │ lines       │ (offset, line) by offset  │  within each function
//!                                  └─────────────┴───────────────────────────┘
//! ```
//!
//! A unit of an image is described at the first request for more than an address by name ([`Directory`]).
//!
//! Invariants: X1, ranges of units do not overlap, because their memory does not; X2, a unit is in the index from before its
//! loading is published until just before its memory is returned, so every address that a thread executes is found;
//! X3, a unit's number is never used twice.
//!
//! **Callers.** The index has a lock, held for one insertion, removal or look-up. Its holder neither waits for
//! another lock nor for the world, so a collector that has stopped the world may look addresses up. A signal handler may not.
//!
//! **Listeners** ([`CodeListener`]) are notified of loaded and freed units: files for profilers, debuggers, unwinders. A unit
//! without code is not reported. Listeners are foreign code, and units are loaded and freed below compiled code, so a panic of a listener ends at the
//! call.
//!
//! A return address is the address after a call: look up the address before it.
//!
//! Cost: a unit is one node in the index and six allocations for all its functions, and two for each with variables or a file; a look-up is
//! two binary searches.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use brolga_codegen::compiled::Variable;
use brolga_codegen::origin::{self, InlinedBody, Origin};
use brolga_ir::func::LineColumn;
use brolga_runtime::{Symbolizer, fenced};

/// A loaded unit's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnitId(u64);

impl UnitId {
    /// The number itself. Numbers rise in the order of loading.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

/// The code of one loaded unit, described.
pub struct CodeUnit {
    id: UnitId,
    base: usize,
    bytes: u32,
    described: OnceLock<Described>,
    /// The source of functions that are not described yet.
    directory: Option<Arc<dyn Directory>>,
    /// Whether it is of object files, whose frames are described by their own unwind tables.
    is_object: bool,
}

/// The functions of code that is not described yet.
pub(crate) trait Directory: Send + Sync {
    /// Where the function of that name begins, from the start of the code, once it is in memory.
    ///
    /// # Errors
    /// It cannot be read: the reason.
    fn offset(&self, name: &str) -> Result<Option<u32>, String>;

    /// Puts all code into memory, for those who look at it.
    fn complete(&self);

    /// All functions.
    fn describe(&self) -> Described;
}

/// The functions of a unit.
#[derive(Default)]
pub(crate) struct Described {
    /// By offset.
    functions: Box<[Row]>,
    /// Indices of `functions`, by name.
    by_name: Box<[u32]>,
    names: Box<str>,
    lines: Box<[(u32, Origin)]>,
    /// By function, of those that have any: the file of its lines, its variables, and the bodies inlined into it.
    debug: Box<[(u32, FunctionDebug)]>,
}

/// The facts that not every function has, for traces and debuggers.
struct FunctionDebug {
    file: Option<Box<str>>,
    variables: Box<[Variable]>,
    inlined: Box<[InlinedBody]>,
}

/// Facts about one function.
struct Row {
    offset: u32,
    size: u32,
    frame_bytes: u32,
    /// Where its name and its lines begin; they end where the next row's begin.
    name: u32,
    lines: u32,
}

/// A function of a loaded unit.
#[derive(Clone, Copy)]
pub struct CodeFunction<'a> {
    unit: &'a CodeUnit,
    index: usize,
}

/// A function with its index.
#[derive(Clone, Copy)]
pub(crate) struct PlacedFunction<'a> {
    pub(crate) name: &'a str,
    pub(crate) offset: u32,
    pub(crate) size: u32,
    pub(crate) frame_bytes: u32,
    pub(crate) lines: &'a [(u32, Origin)],
    pub(crate) inlined: &'a [InlinedBody],
    pub(crate) file: Option<&'a str>,
    pub(crate) variables: &'a [Variable],
}

impl Described {
    /// Functions in ascending order. `by_name` are the indices by name of those that can be looked up.
    pub(crate) fn new<'f>(
        placed: impl Iterator<Item = PlacedFunction<'f>> + Clone,
        by_name: Box<[u32]>,
    ) -> Described {
        let text = placed.clone().map(|function| function.name.len()).sum();
        let count = placed.clone().map(|function| function.lines.len()).sum();
        let says = |(at, function): (usize, PlacedFunction<'f>)| {
            let debug = FunctionDebug {
                file: function.file.map(Box::from),
                variables: function.variables.into(),
                inlined: function.inlined.into(),
            };
            let says_anything =
                debug.file.is_some() || !debug.variables.is_empty() || !debug.inlined.is_empty();
            says_anything.then_some((at as u32, debug))
        };
        let debug = placed.clone().enumerate().filter_map(says).collect();
        let (mut names, mut lines) = (String::with_capacity(text), Vec::with_capacity(count));
        let functions = placed.map(|function| {
            let row = Row {
                offset: function.offset,
                size: function.size,
                frame_bytes: function.frame_bytes,
                name: names.len() as u32,
                lines: lines.len() as u32,
            };
            names.push_str(function.name);
            lines.extend_from_slice(function.lines);
            row
        });
        let functions = functions.collect();
        let (names, lines) = (names.into_boxed_str(), lines.into_boxed_slice());
        Described { functions, by_name, names, lines, debug }
    }
}

impl CodeUnit {
    /// Describes functions from `base` on, in ascending order, which end at `bytes`. `by_name` are their indices by name.
    pub(crate) fn new<'f>(
        placed: impl Iterator<Item = PlacedFunction<'f>> + Clone,
        base: usize,
        bytes: usize,
        by_name: Box<[u32]>,
    ) -> CodeUnit {
        let described = OnceLock::from(Described::new(placed, by_name));
        CodeUnit { id: UnitId(0), base, bytes: bytes as u32, described, directory: None, is_object: false }
    }

    /// As [`CodeUnit::new`], for code of object files.
    pub(crate) fn of_object<'f>(
        placed: impl Iterator<Item = PlacedFunction<'f>> + Clone,
        base: usize,
        bytes: usize,
        by_name: Box<[u32]>,
    ) -> CodeUnit {
        CodeUnit { is_object: true, ..CodeUnit::new(placed, base, bytes, by_name) }
    }

    /// Whether it is of object files, whose frames need not have frame pointers.
    pub fn is_object(&self) -> bool {
        self.is_object
    }

    /// Code whose functions the directory describes, from `base` on to `bytes`.
    pub(crate) fn of_directory(base: usize, bytes: usize, directory: Arc<dyn Directory>) -> CodeUnit {
        let (described, directory) = (OnceLock::new(), Some(directory));
        CodeUnit { id: UnitId(0), base, bytes: bytes as u32, described, directory, is_object: false }
    }

    fn described(&self) -> &Described {
        self.described
            .get_or_init(|| self.directory.as_ref().map(|directory| directory.describe()).unwrap_or_default())
    }

    /// The address of the function of that name.
    ///
    /// # Errors
    /// It is a function of an image, and cannot be read: the reason.
    pub(crate) fn address_of(&self, name: &str) -> Result<Option<usize>, String> {
        match &self.directory {
            Some(directory) => Ok(directory.offset(name)?.map(|offset| self.base + offset as usize)),
            None => Ok(self.function(name).map(|function| function.address())),
        }
    }

    /// Puts all code into memory.
    fn complete(&self) {
        self.directory.iter().for_each(|directory| directory.complete());
    }

    /// Its number.
    pub fn id(&self) -> UnitId {
        self.id
    }

    /// The addresses of its code.
    pub fn addresses(&self) -> Range<usize> {
        self.base..self.base + self.bytes as usize
    }

    /// Its functions, by address.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = CodeFunction<'_>> {
        (0..self.described().functions.len()).map(|index| CodeFunction { unit: self, index })
    }

    /// Its functions, by name.
    pub fn functions_by_name(&self) -> impl ExactSizeIterator<Item = CodeFunction<'_>> {
        self.described().by_name.iter().map(|&index| CodeFunction { unit: self, index: index as usize })
    }

    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<CodeFunction<'_>> {
        let function = |&index: &u32| CodeFunction { unit: self, index: index as usize };
        let by_name = &self.described().by_name;
        let found = by_name.binary_search_by(|index| function(index).name().cmp(name)).ok()?;
        by_name.get(found).map(function)
    }

    /// The function at an address, and the offset of the address in it.
    pub fn at(&self, address: usize) -> Option<(CodeFunction<'_>, u32)> {
        let offset = u32::try_from(address.checked_sub(self.base)?).ok()?;
        let functions = &self.described().functions;
        let index = functions.partition_point(|row| row.offset <= offset).checked_sub(1)?;
        let row = functions.get(index)?;
        let inside = offset - row.offset;
        (inside < row.size).then_some((CodeFunction { unit: self, index }, inside))
    }
}

impl<'a> CodeFunction<'a> {
    fn row(&self) -> &'a Row {
        &self.unit.described().functions[self.index]
    }

    /// The unit that it belongs to.
    pub fn unit(&self) -> &'a CodeUnit {
        self.unit
    }

    /// Its place among the unit's functions by address, which is their order in the link unit.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        let Described { functions, names, .. } = self.unit.described();
        let next = functions.get(self.index + 1);
        &names[self.row().name as usize..next.map_or(names.len(), |row| row.name as usize)]
    }

    /// The address of its first byte.
    pub fn address(&self) -> usize {
        self.unit.base + self.row().offset as usize
    }

    /// The bytes of its code.
    pub fn size(&self) -> usize {
        self.row().size as usize
    }

    /// Bytes of stack that one activation takes, beside arguments on the stack.
    pub fn frame_bytes(&self) -> u32 {
        self.row().frame_bytes
    }

    /// Code offsets in ascending order, each with the source position that holds from there on.
    pub fn lines(&self) -> &'a [(u32, Origin)] {
        let Described { functions, lines, .. } = self.unit.described();
        let next = functions.get(self.index + 1);
        &lines[self.row().lines as usize..next.map_or(lines.len(), |row| row.lines as usize)]
    }

    fn debug(&self) -> Option<&'a FunctionDebug> {
        let debug = &self.unit.described().debug;
        let found = debug.binary_search_by_key(&self.index, |(at, _)| *at as usize).ok()?;
        debug.get(found).map(|(_, debug)| debug)
    }

    /// The file its line numbers refer to, if it is known.
    pub fn file(&self) -> Option<&'a str> {
        self.debug()?.file.as_deref()
    }

    /// The variables of its source, for debuggers.
    #[cfg(feature = "gdb")]
    pub(crate) fn variables(&self) -> &'a [Variable] {
        self.debug().map_or(&[], |debug| &debug.variables)
    }

    /// The source position of the code at an offset, as far as it is known.
    pub fn place(&self, offset: u32) -> LineColumn {
        self.origin(offset).at
    }

    fn origin(&self, offset: u32) -> Origin {
        let lines = self.lines();
        let after = lines.partition_point(|(start, _)| *start <= offset);
        after.checked_sub(1).and_then(|at| lines.get(at)).map(|&(_, origin)| origin).unwrap_or_default()
    }

    /// The functions that the code at an offset comes from, the innermost first, each with the position in it: bodies that were inlined, and
    /// this function at last.
    pub fn frames(&self, offset: u32) -> impl Iterator<Item = (&'a str, LineColumn)> + use<'a> {
        let (name, inlined) = (self.name(), self.debug().map_or(&[][..], |debug| &debug.inlined));
        origin::frames(self.origin(offset), inlined).map(move |(body, at)| (body.unwrap_or(name), at))
    }
}

impl std::fmt::Debug for CodeFunction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:#x}, {} bytes)", self.name(), self.address(), self.size())
    }
}

impl std::fmt::Debug for CodeUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.functions()).finish()
    }
}

/// The function and line of an address in compiled code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbolized {
    /// The unit.
    pub unit: UnitId,
    /// The function's name.
    pub function: String,
    /// The address of its first byte.
    pub start: usize,
    /// How far the address is from there.
    pub offset: u32,
    /// The line of the source, where it is known.
    pub line: Option<u32>,
    /// The column, where it is known.
    pub column: Option<u32>,
}

/// An observer of loaded code. The thread that loads or frees the code calls it, with no lock held, also for code that a listener itself loads.
/// A panic of a listener ends at the call.
pub trait CodeListener: Send + Sync {
    /// A unit was loaded. Its code is in place, and no thread can call it yet.
    fn loaded(&self, unit: &Arc<CodeUnit>);

    /// A unit is about to be freed. It can no longer be called.
    fn freed(&self, unit: &Arc<CodeUnit>);
}

/// All loaded code, by address.
#[derive(Default)]
pub struct CodeMap {
    ranges: RwLock<Ranges>,
}

#[derive(Default)]
struct Ranges {
    units: BTreeMap<usize, Arc<CodeUnit>>,
    /// The last number given to a unit.
    last: u64,
    /// Under the same lock as the units, so that each listener is notified of exactly the units that concern it.
    listeners: Vec<Arc<dyn CodeListener>>,
}

impl CodeMap {
    /// Adds a unit. It is removed when the entry is dropped.
    pub(crate) fn enter(self: &Arc<Self>, mut unit: CodeUnit) -> MapEntry {
        let mut ranges = self.write();
        ranges.last += 1;
        unit.id = UnitId(ranges.last);
        let entry = MapEntry { map: self.clone(), unit: Arc::new(unit) };
        // A unit without code has no address to be found by, and may begin where another one does.
        if entry.unit.bytes > 0 {
            ranges.units.insert(entry.unit.base, entry.unit.clone());
            let listeners = ranges.listeners.clone();
            drop(ranges);
            if !listeners.is_empty() {
                entry.unit.complete();
            }
            tell(&listeners, |listener| listener.loaded(&entry.unit));
        }
        entry
    }

    /// Adds a listener, and notifies it of all units that are loaded already. For a unit that another thread frees meanwhile,
    /// `freed` may be called before `loaded`.
    pub fn listen(&self, listener: Arc<dyn CodeListener>) {
        let mut ranges = self.write();
        ranges.listeners.push(listener.clone());
        let known: Vec<_> = ranges.units.values().cloned().collect();
        drop(ranges);
        for unit in known {
            unit.complete();
            tell(std::slice::from_ref(&listener), |listener| listener.loaded(&unit));
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Ranges> {
        self.ranges.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Ranges> {
        self.ranges.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `look` with the function that contains an address, and the offset from its start. The index is not locked
    /// meanwhile.
    pub fn with<R>(&self, address: usize, look: impl FnOnce(CodeFunction<'_>, u32) -> R) -> Option<R> {
        // A unit of an image may have to be described first, which takes milliseconds.
        let unit = self.unit(address)?;
        let (function, offset) = unit.at(address)?;
        Some(look(function, offset))
    }

    /// The unit that contains an address.
    pub fn unit(&self, address: usize) -> Option<Arc<CodeUnit>> {
        let ranges = self.read();
        let (_, unit) = ranges.units.range(..=address).next_back()?;
        unit.addresses().contains(&address).then(|| unit.clone())
    }

    /// All units that have code, by address.
    pub fn units(&self) -> Vec<Arc<CodeUnit>> {
        self.read().units.values().cloned().collect()
    }

    /// The function and line of an address.
    pub fn symbolize(&self, address: usize) -> Option<Symbolized> {
        self.with(address, |function, offset| Symbolized {
            unit: function.unit().id(),
            function: function.name().into(),
            start: function.address(),
            offset,
            line: function.place(offset).line(),
            column: function.place(offset).column(),
        })
    }
}

/// Stack traces of exceptions have names and lines from here.
impl Symbolizer for CodeMap {
    fn locate(&self, address: usize, frame: &mut dyn FnMut(&str, LineColumn)) -> bool {
        let each = |function: CodeFunction<'_>, offset| {
            function.frames(offset).for_each(|(name, at)| frame(name, at));
        };
        self.with(address, each).is_some()
    }
}

/// Keeps a unit in the index.
pub(crate) struct MapEntry {
    map: Arc<CodeMap>,
    unit: Arc<CodeUnit>,
}

impl MapEntry {
    pub(crate) fn unit(&self) -> &CodeUnit {
        &self.unit
    }
}

impl Drop for MapEntry {
    fn drop(&mut self) {
        if self.unit.bytes == 0 {
            return;
        }
        let mut ranges = self.map.write();
        let gone = ranges.units.remove(&self.unit.base);
        let listeners = ranges.listeners.clone();
        // Its memory is returned without the lock.
        drop(ranges);
        drop(gone);
        tell(&listeners, |listener| listener.freed(&self.unit));
    }
}

/// Notifies listeners. The panic hook has reported a panic; nothing more can be done with it.
fn tell(listeners: &[Arc<dyn CodeListener>], what: impl Fn(&dyn CodeListener)) {
    for listener in listeners {
        let _panicked = fenced(|| what(&**listener));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, Weak};

    use super::*;

    fn unit(base: usize) -> CodeUnit {
        let function = |name, offset, size, lines| PlacedFunction {
            name,
            offset,
            size,
            frame_bytes: 32,
            lines,
            inlined: &[],
            file: None,
            variables: &[],
        };
        let of_b = [(0, LineColumn::new(7, 0).into()), (4, LineColumn::new(9, 5).into())];
        let of_a = [(2, LineColumn::new(3, 0).into())];
        let functions =
            [function("b", 0, 10, &of_b[..]), function("", 16, 1, &[]), function("aλ", 32, 5, &of_a)];
        CodeUnit::new(functions.into_iter(), base, 64, Box::new([1, 2, 0]))
    }

    #[test]
    fn an_address_is_found_with_function_offset_and_line() {
        let map = Arc::new(CodeMap::default());
        let entry = map.enter(unit(0x1000));
        let other = map.enter(unit(0x1040));
        assert_ne!(entry.unit().id(), other.unit().id());
        let found = |address| map.symbolize(address).map(|s| (s.unit, s.function, s.offset, s.line));
        let (first, second) = (entry.unit().id(), other.unit().id());
        assert_eq!(found(0xfff), None);
        assert_eq!(found(0x1000), Some((first, "b".into(), 0, Some(7))));
        assert_eq!(found(0x1003), Some((first, "b".into(), 3, Some(7))));
        assert_eq!(found(0x1009), Some((first, "b".into(), 9, Some(9))));
        assert_eq!(found(0x100a), None, "padding belongs to no function");
        assert_eq!(found(0x1010), Some((first, String::new(), 0, None)));
        assert_eq!(found(0x1021), Some((first, "aλ".into(), 1, None)), "before the first line");
        assert_eq!(found(0x1062), Some((second, "aλ".into(), 2, Some(3))));
        assert_eq!(found(0x1080), None);
        drop(entry);
        assert_eq!(found(0x1000), None);
        assert_eq!(found(0x1040).unwrap().0, second);
    }

    /// Adds one more listener with each reported unit.
    struct Adds {
        map: Weak<CodeMap>,
        heard: Arc<Mutex<Vec<&'static str>>>,
    }

    struct Hears(Arc<Mutex<Vec<&'static str>>>);

    impl CodeListener for Hears {
        fn loaded(&self, _: &Arc<CodeUnit>) {
            self.0.lock().unwrap().push("loaded");
        }
        fn freed(&self, _: &Arc<CodeUnit>) {
            self.0.lock().unwrap().push("freed");
        }
    }

    impl CodeListener for Adds {
        fn loaded(&self, unit: &Arc<CodeUnit>) {
            assert!(self.map.upgrade().unwrap().symbolize(unit.addresses().start).is_some());
            self.map.upgrade().unwrap().listen(Arc::new(Hears(self.heard.clone())));
        }
        fn freed(&self, _: &Arc<CodeUnit>) {
            self.map.upgrade().unwrap().listen(Arc::new(Hears(self.heard.clone())));
        }
    }

    #[test]
    fn listeners_may_add_listeners() {
        let (map, heard) = (Arc::new(CodeMap::default()), Arc::default());
        map.listen(Arc::new(Adds { map: Arc::downgrade(&map), heard: Arc::clone(&heard) }));
        drop(map.enter(unit(0x1000)));
        assert_eq!(*heard.lock().unwrap(), ["loaded", "freed"]);
    }

    #[test]
    fn nothing_is_told_of_units_without_code() {
        let (map, heard) = (Arc::new(CodeMap::default()), Arc::default());
        let empty = || CodeUnit::new(std::iter::empty(), 0x1000, 0, Box::default());
        let before = map.enter(empty());
        map.listen(Arc::new(Hears(Arc::clone(&heard))));
        drop(before);
        drop(map.enter(empty()));
        assert!(heard.lock().unwrap().is_empty());
    }

    struct Panics;

    impl CodeListener for Panics {
        fn loaded(&self, _: &Arc<CodeUnit>) {
            std::panic::resume_unwind(Box::new("loaded"));
        }
        fn freed(&self, _: &Arc<CodeUnit>) {
            std::panic::resume_unwind(Box::new("freed"));
        }
    }

    #[test]
    fn a_listener_that_panics_keeps_nothing_from_the_others() {
        let (map, heard) = (Arc::new(CodeMap::default()), Arc::default());
        map.listen(Arc::new(Panics));
        map.listen(Arc::new(Hears(Arc::clone(&heard))));
        drop(map.enter(unit(0x1000)));
        assert_eq!(*heard.lock().unwrap(), ["loaded", "freed"]);
        assert!(map.units().is_empty());
    }

    #[test]
    fn names_are_found_and_come_in_order() {
        let unit = unit(0);
        for name in ["b", "", "aλ"] {
            assert_eq!(unit.function(name).unwrap().name(), name);
        }
        assert!(unit.function("a").is_none());
        assert!(unit.functions_by_name().map(|f| f.name()).is_sorted());
    }
}
