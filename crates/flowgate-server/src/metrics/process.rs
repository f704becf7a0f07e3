//! The system's figures of the process, under the names that Prometheus dashboards expect. On Linux only.

use std::fs;

use super::exposition::{Exposition, seconds};

/// Linux reports times in hundredths of a second, at any tick rate of the kernel.
const NANOS_PER_TICK: u64 = 10_000_000;

pub(super) fn write(out: &mut Exposition) {
    let read = |file: &str| fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    if let Some(ticks) = cpu_ticks(&read("stat")) {
        out.counter("process_cpu_seconds_total", "Processor time, user and system.")
            .sample(&[], seconds(ticks.saturating_mul(NANOS_PER_TICK)));
    }
    if let Some(bytes) = resident_bytes(&read("status")) {
        out.gauge("process_resident_memory_bytes", "Memory in use by the process.").sample(&[], bytes);
    }
    if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
        out.gauge("process_open_fds", "Open file descriptors.").sample(&[], descriptors.count());
    }
    if let Some(most) = max_descriptors(&read("limits")) {
        out.gauge("process_max_fds", "The most file descriptors that may be open.").sample(&[], most);
    }
}

/// The processor time: the 14th and the 15th field. The second field is a name in parentheses, which may hold any
/// character.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut after_name = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (after_name.next()?.parse().ok()?, after_name.next()?.parse().ok()?);
    Some(user + system)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn max_descriptors(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes() {
        assert_eq!(cpu_ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 70 30 0 0"), Some(100));
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t   2048 kB\n"), Some(2 << 20));
        assert_eq!(max_descriptors("Limit  Soft Hard\nMax open files            1024   524288   files\n"), Some(1024));
        assert_eq!((cpu_ticks(""), resident_bytes(""), max_descriptors("")), (None, None, None));
    }
}
