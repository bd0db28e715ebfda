//! Memory of code is returned: after many repetitions of compile, call and drop the process is as large as before, with as
//! many mappings; and a program that only grows has mappings for its chunks, not for its units. One test alone in its file,
//! because it measures the whole process.

mod support;

use brolga_codegen::isa::Tier;
use cranelift_codegen::ir::InstBuilder;
use support::{compile, engines, int_function, ints, load};

/// Resident KiB of the process, and the number of its mappings.
#[cfg(target_os = "linux")]
fn process() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident = line.split_whitespace().next().unwrap().parse().unwrap();
    (resident, std::fs::read_to_string("/proc/self/maps").unwrap().lines().count())
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_code_comes_back() {
    compile_call_drop_is_flat();
    mappings_do_not_grow_with_units();
}

#[cfg(target_os = "linux")]
fn compile_call_drop_is_flat() {
    for jit in engines() {
        let mut kept = Vec::new();
        let mut round = |value: i64| {
            let f = compile(&jit, Tier::Baseline, "f", &ints(1, 1), |c| {
                let x = c.params()[0];
                let sum = c.b.ins().iadd_imm_s(x, value);
                c.b.ins().return_(&[sum]);
            });
            let unit = load(&jit, vec![f], vec![int_function("f", 1)]);
            assert_eq!(unit.func::<(i64,), i64>("f").unwrap().call((1,)).unwrap(), value + 1);
            // A few of different ages stay, so that freed bytes are between used ones.
            if value % 64 == 0 {
                kept.push(unit);
            }
            if kept.len() > 20 {
                kept.swap_remove(value as usize % 20);
            }
        };
        (0..1_000).for_each(&mut round);
        let ((resident, mappings), stats) = (process(), jit.stats());
        (1_000..5_000).for_each(&mut round);
        let ((resident_after, mappings_after), stats_after) = (process(), jit.stats());
        // Allocators of the process keep some pages more or less.
        assert!(resident_after <= resident + 1_024, "{resident} KiB became {resident_after}");
        assert!(mappings_after <= mappings + 45, "{mappings} mappings became {mappings_after}");
        assert!(stats_after.resident <= stats.resident + (64 << 10), "{stats:?} became {stats_after:?}");
        drop(kept);
        assert_eq!((jit.stats().runs, jit.stats().lost), (1, 0), "only the trampoline is left");
    }
}

#[cfg(target_os = "linux")]
fn mappings_do_not_grow_with_units() {
    let [jit, ..] = engines();
    let f = compile(&jit, Tier::Baseline, "f", &ints(0, 1), |c| {
        let value = c.int(7);
        c.b.ins().return_(&[value]);
    });
    let in_code = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains("brolga code")).count()
    };
    let before = in_code();
    let units: Vec<_> = (0..20_000).map(|_| load(&jit, vec![f.clone()], vec![])).collect();
    assert!(in_code() <= before + 4, "{} mappings", in_code());
    let stats = jit.stats();
    let overhead = stats.in_use / units.len() - f.code.len();
    assert!(overhead <= 64, "{overhead} bytes of code memory beyond the code");
}
