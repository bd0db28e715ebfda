//! Root maps of a loaded unit, for the collector.
//!
//! The maps of a [`CompiledFunction`](brolga_codegen::compiled::CompiledFunction) are relative to the start of its code. Here the maps of all
//! functions of a unit become one table by address, which the run time has from the loading of the unit until its code
//! is freed. Units without maps are not registered.

use brolga_codegen::compiled::FrameMap;
use brolga_runtime::{FrameMaps, FrameMapsInForce, Runtime};

use crate::link::linker::{LinkUnit, LoadedUnit};

/// Registers the frame maps of the unit with the runtime; `None` if it has none.
///
/// # Safety
///
/// The maps describe the code (L1 of [`Jit::load`](crate::Jit::load)), and the result is not dropped before `loaded`.
pub(crate) unsafe fn put_in_force(
    runtime: &Runtime,
    unit: &LinkUnit,
    loaded: &LoadedUnit,
) -> Option<FrameMapsInForce> {
    let placed: Vec<(usize, &[FrameMap], usize)> = unit
        .functions
        .iter()
        .filter(|function| !function.frame_maps.is_empty())
        .filter_map(|function| {
            Some((loaded.function(&function.name)?, function.frame_maps.as_slice(), function.code.len()))
        })
        .collect();
    let start = placed.iter().map(|&(address, ..)| address).min()?;
    let end = placed.iter().map(|&(address, _, size)| address + size).max()?;
    let maps = placed.iter().flat_map(|&(address, maps, _)| {
        maps.iter().map(move |map| ((address - start) as u32 + map.return_offset, &*map.words))
    });
    // SAFETY: by the contract; a unit is contiguous.
    Some(unsafe { runtime.add_frame_maps(start..end, FrameMaps::new(maps)) })
}
