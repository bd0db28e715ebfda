//! The cache of compiled code: a directory that engines, sessions and processes share.
//!
//! ```text
//!   brolga_cache_open(directory, limit, key file) ──► BrolgaCache ── brolga_options_set_cache ──► engines and sessions
//!                                                          └── brolga_cache_stats, brolga_cache_flush
//! ```
//!
//! Found code is run. So entries are sealed with a key, and one that was sealed with another is not found: who can read the key file can write code that runs here.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use brolga::cache::{Cache, CacheKey, DirectoryStore};

use crate::error::{BrolgaCode, BrolgaError, fenced, in_full};
use crate::options::BrolgaOptions;
use crate::out::{give, given, place};
use crate::text::c_text;

/// A cache of compiled code. Made by `brolga_cache_open`, freed by `brolga_cache_free`; options, engines and sessions keep it.
pub struct BrolgaCache {
    pub(crate) cache: Arc<Cache>,
}

/// The counters of a cache since it was opened.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BrolgaCacheStats {
    /// Entries that were found and used.
    pub hits: u64,
    /// Look-ups that found nothing.
    pub misses: u64,
    /// Entries that were found and refused: damaged, or sealed with another key.
    pub refused: u64,
    /// Bytes of the entries found.
    pub read: u64,
    /// Entries written.
    pub kept: u64,
    /// Bytes of the entries written.
    pub written: u64,
    /// Errors of the directory. They cost time, and nothing else.
    pub errors: u64,
    /// Nanoseconds that compiling the found entries took, less those to find them.
    pub saved: u64,
}

fn refused(error: &dyn std::error::Error) -> BrolgaError {
    BrolgaError::new(BrolgaCode::Machine, in_full(error))
}

/// Opens the cache in a directory, which is made if it is not there, for its owner only. Its entries together take `limit` bytes at most. `key` is the file of the key, which is made
/// with a random key if it is not there; a file that others than its owner may read or write is an error.
///
/// # Safety
///
/// `directory` and `key` are null or end in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_cache_open(
    directory: *const c_char,
    limit: u64,
    key: *const c_char,
    cache: Option<&mut MaybeUninit<*mut BrolgaCache>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let place = place(cache, "cache")?;
        // SAFETY: by the contract.
        let (directory, key) = unsafe { (c_text(directory, "directory")?, c_text(key, "key")?) };
        let key = CacheKey::from_file(key).map_err(|error| refused(&error))?;
        let store = DirectoryStore::open(directory, limit).map_err(|error| refused(&error))?;
        give(place, BrolgaCache { cache: Arc::new(Cache::new(store, &key)) });
        Ok(())
    })
}

/// Engines and sessions with these options look for code in the cache before they compile, and keep compiled code there. Null: they use no cache.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_options_set_cache(
    options: Option<&mut BrolgaOptions>,
    cache: Option<&BrolgaCache>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(options, "options")?.cache = cache.map(|cache| cache.cache.clone());
        Ok(())
    })
}

/// Returns what the cache has done since it was opened.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_cache_stats(
    cache: Option<&BrolgaCache>,
    stats: Option<&mut MaybeUninit<BrolgaCacheStats>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (cache, place) = (given(cache, "cache")?, place(stats, "stats")?);
        let stats = cache.cache.stats();
        place.write(BrolgaCacheStats {
            hits: stats.hits,
            misses: stats.misses,
            refused: stats.refused,
            read: stats.read,
            kept: stats.kept,
            written: stats.written,
            errors: stats.errors,
            saved: u64::try_from(stats.saved.as_nanos()).unwrap_or(u64::MAX),
        });
        Ok(())
    })
}

/// Waits until entries that are being written are in the directory. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_cache_flush(cache: Option<&BrolgaCache>) {
    if let Some(cache) = cache {
        cache.cache.flush();
    }
}

/// Frees a handle of a cache. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_cache_free(cache: Option<Box<BrolgaCache>>) {
    drop(cache);
}
