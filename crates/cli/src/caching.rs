//! The options for a cache of code that outlives the process.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use brolga::cache::{Cache, CacheKey, DirectoryStore};

use super::report::{Stop, err};
use super::size;

/// Where code is kept between runs.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Caching {
    /// Look for code in this directory before compiling, and keep there what is compiled
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The key of the cache, a file that is made if it is not there: code that was kept with another key is not run [default: `brolga/cache.key` below `$XDG_CONFIG_HOME` or `~/.config`]
    #[arg(long, value_name = "FILE", requires = "cache")]
    cache_key: Option<PathBuf>,
    /// About how much of the disk the directory may take: bytes, or a number with the suffix `K`, `M`, `G` or `T`
    #[arg(long, value_name = "SIZE", requires = "cache", value_parser = size, default_value = "1G")]
    cache_limit: usize,
    /// Say afterwards what the cache was good for
    #[arg(long, requires = "cache")]
    cache_stats: bool,
}

impl Caching {
    /// The cache, if requested. A directory that cannot be used costs the cache and not the program.
    pub(super) fn open(&self) -> Result<Option<Arc<Cache>>, Stop> {
        let Some(path) = &self.cache else { return Ok(None) };
        let key = match &self.cache_key {
            Some(path) => path.clone(),
            None => default_key()?,
        };
        let key = CacheKey::from_file(key).map_err(|error| Stop::System(error.to_string()))?;
        match DirectoryStore::open(path, self.cache_limit as u64) {
            Ok(store) => Ok(Some(Arc::new(Cache::new(store, &key)))),
            Err(error) => {
                err(format!("the cache is not used: {error}"));
                Ok(None)
            }
        }
    }

    /// Prints the counters if the command line wants them, of all entries.
    pub(super) fn report(&self, cache: Option<&Arc<Cache>>) {
        if let Some(cache) = cache.filter(|_| self.cache_stats) {
            cache.flush();
            err(format!("cache: {}", cache.stats()));
        }
    }
}

/// The place of the user's key, which is not in the directory of the entries: others may be able to write there.
#[expect(clippy::disallowed_methods, reason = "the command reads the environment")]
fn default_key() -> Result<PathBuf, Stop> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let settings = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let settings = settings.ok_or_else(|| {
        Stop::Usage(
            "there is no home directory for the key of the cache; name a file with `--cache-key`".to_owned(),
        )
    })?;
    Ok(settings.join("brolga/cache.key"))
}
