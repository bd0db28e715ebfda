//! The memory of a heap: its own cells, or the crate `mmtk`.

use super::cells::Cells;
use super::heap::Heap;
use super::machine;
#[cfg(feature = "heap-mmtk")]
use super::mmtk::{Mmtk, MmtkError, MmtkOptions};
use super::options::HeapOptions;

impl Heap {
    pub(crate) fn new(mut options: HeapOptions) -> Heap {
        options.limit = options.limit.or_else(machine::default_limit);
        let cells = Box::new(Cells::new(&options));
        Heap::with(options, cells)
    }

    /// A heap whose memory is managed by mmtk.
    #[cfg(feature = "heap-mmtk")]
    pub(crate) fn with_mmtk(options: HeapOptions, mmtk: &MmtkOptions) -> Result<Heap, MmtkError> {
        Ok(Heap::with(options, Box::new(Mmtk::start(mmtk)?)))
    }
}
