//! Hashes the compiler's sources. Keys of a persistent cache include the hash, so a changed compiler does not run code that it would not generate.
//!
//! A released crate does not have the sources of the other crates next to it; there the versions suffice.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that the result of a compilation depends on.
const CRATES: [&str; 9] = ["aot", "codegen", "engine", "gcroots", "instances", "ir", "jit", "opt", "runtime"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for name in CRATES {
        let folder = Path::new("..").join(name).join("src");
        if !folder.is_dir() {
            continue;
        }
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(&folder, &mut files);
        files.sort();
        for file in files {
            hash.bytes(file.to_string_lossy().as_bytes());
            hash.bytes(&fs::read(&file).unwrap_or_default());
        }
    }
    println!("cargo::rustc-env=BROLGA_SOURCES={:016x}", hash.0);
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// FNV-1a.
struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
