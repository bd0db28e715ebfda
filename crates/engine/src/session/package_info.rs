//! The identity, programs, settings and sizes of a package of whatever version of the compiler. Nothing of it runs or is defined.

use std::fmt;

use brolga_aot::image::ImageError;
use brolga_aot::package::{BuildId, Need, Package};
use brolga_cache::Fingerprint;
use brolga_ir::diag::counted;
use brolga_ir::{Context, binary};
use brolga_jit::abi::abi_of;
use brolga_runtime::heap::DEFAULT_ABI;

use super::error::SessionError;
use crate::error::Error;
use crate::image_info::id_of;

/// The facts of a package, collected by [`package_info`]. `Display` writes one line per fact.
#[derive(Debug)]
#[non_exhaustive]
pub struct PackageInfo {
    /// Its name.
    pub name: String,
    /// The build id, a hash of the file.
    pub id: BuildId,
    /// Whether its code has the ABI of this version with the default heap.
    pub fits: bool,
    /// The packages that it was built on, by name and build id.
    pub needs: Vec<(String, BuildId)>,
    /// The programs, in order.
    pub programs: Vec<StoredProgram>,
    /// The number of units.
    pub units: usize,
    /// The names and values of the settings that it was built with.
    pub settings: Vec<(String, String)>,
    /// The size of the file in bytes.
    pub bytes: usize,
}

/// A program of a package.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredProgram {
    /// Its name.
    pub name: String,
    /// Its identity, as [`image::program_id`](crate::image::program_id) has it.
    pub id: Fingerprint,
    /// The number of its functions.
    pub functions: usize,
    /// The number of calls after which a function goes to the second tier; `None` for a single tier.
    pub tiers: Option<u32>,
}

/// Describes the package in a file's bytes.
///
/// # Errors
/// The bytes are not a package of this format, or it is damaged.
pub fn package_info(bytes: &[u8]) -> Result<PackageInfo, SessionError> {
    let package = Package::read_any(bytes.to_vec()).map_err(Error::from)?;
    let program = |(name, tiers, module): (&str, Option<u32>, &[u8])| {
        let module =
            binary::read(module, Context::new()).map_err(|error| Error::from(ImageError::from(error)))?;
        let functions = module.func_count();
        Ok(StoredProgram { name: name.to_owned(), id: id_of(&module), functions, tiers })
    };
    Ok(PackageInfo {
        name: package.name().to_owned(),
        id: package.id(),
        fits: package.abi() == abi_of(&DEFAULT_ABI),
        needs: package.needs().iter().map(|Need { name, id }| (name.clone(), *id)).collect(),
        programs: package.programs().map(program).collect::<Result<_, SessionError>>()?,
        units: package.unit_count(),
        settings: package.settings().to_vec(),
        bytes: bytes.len(),
    })
}

impl fmt::Display for PackageInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "package    {}, build {}", self.name, self.id)?;
        let whose = if self.fits { "of this version" } else { "of another version or heap: build it again" };
        writeln!(f, "code       {}, ABI {whose}", counted(self.units, "unit"))?;
        for StoredProgram { name, id, functions, tiers } in &self.programs {
            let tiers = match tiers {
                Some(calls) => format!("two tiers, the second after {}", counted(*calls as usize, "call")),
                None => "one tier".to_owned(),
            };
            writeln!(f, "program    {name}: {id:?}, {}, {tiers}", counted(*functions, "function"))?;
        }
        for (name, id) in &self.needs {
            writeln!(f, "needs      {name}, build {id}")?;
        }
        for (name, value) in &self.settings {
            writeln!(f, "setting    {name}: {value}")?;
        }
        write!(f, "file       {} bytes", self.bytes)
    }
}
