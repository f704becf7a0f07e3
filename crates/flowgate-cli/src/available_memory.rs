//! The memory that this process may use: that of the machine, bounded by its control groups.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use flowgate_engine::config::{ByteSize, Config};

/// The configuration allows more memory than the process may use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scarcity {
    max_memory: ByteSize,
    available: Available,
}

/// The smallest bound on the memory of this process, and the file that states it.
#[derive(Debug, PartialEq, Eq)]
struct Available {
    bytes: u64,
    file: PathBuf,
}

impl fmt::Display for Scarcity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scarcity { max_memory, available: Available { bytes, file } } = self;
        write!(
            f,
            "store.max_memory is {max_memory}, but this process may use only {} MB ({}): the system would kill the server \
             before its store is full. Lower max_memory in [store], or raise that limit",
            bytes / 1_000_000,
            file.display()
        )
    }
}

/// Checks that the process may use the memory that `config` allows for counters. On Linux only.
pub(crate) fn check(config: &Config) -> Result<(), Scarcity> {
    check_in(Path::new("/"), config.store.max_memory)
}

fn check_in(root: &Path, max_memory: ByteSize) -> Result<(), Scarcity> {
    let least = limits(root).into_iter().min_by_key(|available| available.bytes);
    match least.filter(|available| available.bytes < max_memory.bytes()) {
        Some(available) => Err(Scarcity { max_memory, available }),
        None => Ok(()),
    }
}

/// All bounds that can be read. A file that is missing or says `max` sets no bound.
fn limits(root: &Path) -> Vec<Available> {
    let meminfo = root.join("proc/meminfo");
    let machine = read(&meminfo).and_then(|text| mem_total(&text)).map(|bytes| Available { bytes, file: meminfo });
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let files = groups.lines().flat_map(|line| limit_files(root, line));
    let allowed = files.filter_map(|file| {
        let bytes = read(&file)?.trim().parse().ok()?;
        Some(Available { bytes, file })
    });
    machine.into_iter().chain(allowed).collect()
}

/// The files with the limit of a group and of all groups around it. `line` is one of `/proc/self/cgroup`:
/// `number:controllers:path`, without controllers in version 2.
///
/// In a container the path may be that of the host, which is not there; the outermost group is the container's own
/// then.
fn limit_files(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (mounts, file): (&[&str], _) = if controllers.is_empty() {
        // If both versions are mounted, version 2 lies beside the controllers of version 1.
        (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        (&["sys/fs/cgroup/memory"], "memory.limit_in_bytes")
    } else {
        return Vec::new();
    };
    // A path outside of the process's name space begins with `..`. It leads to no file that the process can read.
    let inside = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    let group: PathBuf = inside.collect();
    let around: Vec<&Path> = group.ancestors().collect();
    mounts.iter().flat_map(|mount| around.iter().map(move |group| root.join(mount).join(group).join(file))).collect()
}

fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn read(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// The smallest bound that these files set, if it is below 1 GB.
    fn least(files: &[(&str, &str)]) -> Option<(u64, String)> {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let scarcity = check_in(root.path(), ByteSize::new(1_000_000_000)).err()?;
        let file = scarcity.available.file.strip_prefix(root.path()).unwrap().display().to_string();
        Some((scarcity.available.bytes, file))
    }

    #[test]
    fn the_least_bound_counts() {
        let machine = ("proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\n");
        let small = ("proc/meminfo", "MemTotal:  500000 kB\n");
        let version_2 = ("proc/self/cgroup", "0::/a/b\n");
        let version_1 = ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/1234\n0::/\n");
        let none: &[(&str, &str)] = &[];
        assert_eq!(least(none), None, "nothing is known");
        assert_eq!(least(&[machine]), None);
        assert_eq!(least(&[small]), Some((512_000_000, "proc/meminfo".to_owned())));

        let inner = "sys/fs/cgroup/a/b/memory.max";
        assert_eq!(least(&[machine, version_2, (inner, "max\n")]), None);
        assert_eq!(least(&[machine, version_2, (inner, "536870912\n")]), Some((GIB / 2, inner.to_owned())));
        let outer = "sys/fs/cgroup/a/memory.max";
        let both = [machine, version_2, (inner, "max\n"), (outer, "268435456\n")];
        assert_eq!(least(&both), Some((GIB / 4, outer.to_owned())), "the groups around it count, too");
        let outside = [machine, ("proc/self/cgroup", "0::/../other\n"), ("sys/fs/cgroup/memory.max", "1000\n")];
        assert_eq!(least(&outside), Some((1000, "sys/fs/cgroup/memory.max".to_owned())));

        let inner = "sys/fs/cgroup/memory/docker/1234/memory.limit_in_bytes";
        assert_eq!(least(&[machine, version_1, (inner, "9223372036854771712\n")]), None);
        assert_eq!(least(&[machine, version_1, (inner, "536870912\n")]), Some((GIB / 2, inner.to_owned())));
        let own = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(
            least(&[machine, version_1, (own, "536870912\n")]),
            Some((GIB / 2, own.to_owned())),
            "in a container"
        );
    }

    #[test]
    fn the_warning_says_what_to_do() {
        let available = Available { bytes: 512_000_000, file: "/sys/fs/cgroup/memory.max".into() };
        let scarcity = Scarcity { max_memory: ByteSize::new(1_000_000_000), available };
        let expected = "store.max_memory is 1GB, but this process may use only 512 MB (/sys/fs/cgroup/memory.max): ";
        assert!(scarcity.to_string().starts_with(expected), "{scarcity}");
    }
}
