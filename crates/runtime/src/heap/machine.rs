//! The default memory limit of a heap.
//!
//! ```text
//!   limit = min(3/4 · memory of the machine,
//!               3/4 · limits of the control groups that the process is in (versions 1 and 2),
//!               1/2 · limit of the process's address space (`ulimit -v`))
//! ```
//!
//! In a limited address space, code and its second mapping take an eighth, and libraries and stacks reserve
//! more than they use.
//!
//! A program that allocates without bound gets `OutOfMemoryError` before the system kills its process. A
//! quarter is left for code, stacks and the host. Heaps in one process do not consider each other.
//!
//! Memory and groups are read for the first heap of the process; the limit of addresses is read for each heap.
//!
//! Cost: reading some small files for the first heap, a fifth of a millisecond; then one system call.
//!
//! Not done: the memory of systems other than Linux, whose default is the limit of addresses alone.

use std::fs::read_to_string;
use std::path::Path;
use std::sync::OnceLock;

/// The default limit of a heap in bytes; `None` if the system provides no information.
pub(crate) fn default_limit() -> Option<usize> {
    static MEMORY: OnceLock<Option<usize>> = OnceLock::new();
    let memory = *MEMORY.get_or_init(memory);
    memory.into_iter().chain(address_limit().map(|bytes| bytes / 2)).min()
}

/// Three quarters of the memory of the machine, or of the smallest limit of the control groups.
fn memory() -> Option<usize> {
    let all = read_to_string("/proc/meminfo").ok().as_deref().and_then(total_memory);
    let groups = read_to_string("/proc/self/cgroup").ok();
    let group = groups.as_deref().and_then(|groups| group_limit(groups, |file| read_to_string(file).ok()));
    all.into_iter().chain(group).min().map(|bytes| bytes / 4 * 3)
}

/// The soft limit of the process's address space in bytes; `None` without one.
pub fn address_limit() -> Option<usize> {
    let mut limit = std::mem::MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the structure is written when the call succeeds, and only then it is read.
    let limit = unsafe {
        match libc::getrlimit(libc::RLIMIT_AS, limit.as_mut_ptr()) {
            0 => limit.assume_init().rlim_cur,
            _ => return None,
        }
    };
    (limit != libc::RLIM_INFINITY).then(|| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// `MemTotal` of `/proc/meminfo`.
fn total_memory(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The smallest limit of the control groups in `/proc/self/cgroup`, of either version, and of their
/// ancestors. Text that is not a number means no limit.
fn group_limit(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<usize> {
    let mut smallest: Option<usize> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let folder = Path::new(root).join(path.trim_start_matches('/'));
        // A container sees its own group as the root, whatever its path.
        let around = folder.ancestors().take_while(|folder| folder.starts_with(root));
        for found in around.filter_map(|folder| read(&folder.join(file))?.trim().parse().ok()) {
            smallest = Some(smallest.map_or(found, |known| known.min(found)));
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total_memory("MemTotal:       16 kB\nMemFree: 3 kB\n"), Some(16384));
        assert_eq!(total_memory("MemFree: 3 kB\n"), None);
        assert_eq!(total_memory("MemTotal: many\n"), None);
    }

    #[test]
    fn the_smallest_limit_around_the_process_counts() {
        let files = |path: &Path| match path.to_str()? {
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".to_owned()),
            "/sys/fs/cgroup/a/memory.max" => Some("5000\n".to_owned()),
            "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => Some("3000\n".to_owned()),
            _ => None,
        };
        assert_eq!(group_limit("0::/a/b\n", files), Some(5000));
        assert_eq!(group_limit("0::/a/b\n4:cpu,memory:/c\n", files), Some(3000));
        assert_eq!(group_limit("4:cpu:/c\nnonsense\n", files), None);
        assert_eq!(group_limit("0::/../../x\n", files), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_tells() {
        assert!(default_limit().is_some_and(|bytes| bytes > 1 << 20));
    }
}
