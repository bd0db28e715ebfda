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
//! Cost: reading some small files for each heap, some tens of microseconds.
//!
//! Not done: systems other than Linux, which have no default limit.

use std::fs::read_to_string;
use std::path::Path;

/// The default limit of a heap in bytes; `None` if the system provides no information.
pub(crate) fn default_limit() -> Option<usize> {
    let all = read_to_string("/proc/meminfo").ok().as_deref().and_then(total_memory);
    let groups = read_to_string("/proc/self/cgroup").ok();
    let group = groups.as_deref().and_then(|groups| group_limit(groups, |file| read_to_string(file).ok()));
    let memory = all.into_iter().chain(group).min().map(|bytes| bytes / 4 * 3);
    let addresses = read_to_string("/proc/self/limits").ok().as_deref().and_then(address_limit);
    memory.into_iter().chain(addresses.map(|bytes| bytes / 2)).min()
}

/// The soft limit `Max address space` in `/proc/self/limits`.
fn address_limit(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
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
    fn the_limit_of_addresses_is_read() {
        let text = |soft: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax address space         {soft}            unlimited            bytes\n"
            )
        };
        assert_eq!(address_limit(&text("4294967296")), Some(1 << 32));
        assert_eq!(address_limit(&text("unlimited")), None);
        assert_eq!(address_limit("Max processes 1 2 processes\n"), None);
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
