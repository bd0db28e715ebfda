//! The kernels: C, Cranelift alone, and Brolga, side by side in one run.
//!
//! ```text
//! cargo bench --bench kernels [-- NAME…]
//!
//!   kernel      C ms   clif   -O0   -O1   -O2   -O3      columns after the first: time ÷ C
//! ```
//!
//! | column | what runs |
//! |---|---|
//! | C | the kernel's C source, built by the system C compiler at `-O2` |
//! | clif | hand-written Cranelift IR of the same loops, at Cranelift's best setting (`clif/`) |
//! | -O*n* | `examples/NAME.jlir` through the whole pipeline |
//!
//! The contenders take turns, round after round, and each keeps its best time: a disturbance of the machine then hits all
//! of them. Every result is compared with C's. A kernel without a C compiler or a source on this machine is left out and
//! said to be.

mod brolga_code;
mod c;
mod clif;

use std::time::Instant;

/// A kernel and the size to run it at: large enough for milliseconds, small enough for many rounds.
struct Kernel {
    name: &'static str,
    a: i64,
    b: i64,
}

const fn kernel(name: &'static str, a: i64, b: i64) -> Kernel {
    Kernel { name, a, b }
}

const KERNELS: &[Kernel] = &[
    kernel("fib", 27, 4),
    kernel("ackermann", 7, 4),
    kernel("mandel", 100, 0),
    kernel("mandelbrot", 200, 0),
    kernel("pi_sum", 100, 10_000),
    kernel("parse_int", 200_000, 1),
    kernel("quicksort", 5_000, 20),
    kernel("mat_stat", 400, 1),
    kernel("matmul_ijk", 128, 3),
    kernel("matmul_ikj", 128, 6),
    kernel("nbody", 50_000, 0),
    kernel("spectral_norm", 200, 0),
    kernel("fannkuch", 8, 0),
    kernel("sieve", 500_000, 3),
    kernel("nqueens", 10, 0),
    kernel("sha256", 65_536, 8),
    kernel("crc32", 262_144, 8),
    kernel("dot_f64", 2_048, 2_000),
    kernel("dot8_f64", 2_048, 3_000),
    kernel("axpy_f64", 2_048, 3_000),
    kernel("binary_trees", 12, 0),
    kernel("shapes", 1_024, 200),
    kernel("sort_cmp", 20_000, 4),
    kernel("exceptions", 100_000, 1),
];

/// How often each contender runs; the best run counts.
const ROUNDS: usize = 12;

/// One implementation of a kernel, ready to run.
pub(crate) struct Contender {
    /// Its column.
    pub(crate) column: &'static str,
    /// Runs it once.
    pub(crate) run: Box<dyn Fn(i64, i64) -> Result<f64, String>>,
}

fn main() {
    // `cargo bench` passes its own flags; names of kernels are what is left.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let columns: Vec<&str> =
        std::iter::once("clif").chain(brolga_code::LEVELS.map(|(column, _)| column)).collect();
    println!(
        "{:<14}{:>9}{}",
        "kernel",
        "C ms",
        columns.iter().map(|c| format!("{c:>8}")).collect::<String>()
    );
    let mut logs: Vec<(f64, u32)> = vec![(0.0, 0); columns.len()];
    for kernel in KERNELS.iter().filter(|k| wanted.is_empty() || wanted.iter().any(|w| w == k.name)) {
        match measure(kernel) {
            Ok(row) => {
                print!("{:<14}{:>9.3}", kernel.name, row.c * 1e3);
                for (n, column) in columns.iter().enumerate() {
                    match row.others.iter().find(|(c, _)| c == column) {
                        Some(&(_, time)) => {
                            let ratio = time / row.c;
                            logs[n].0 += ratio.ln();
                            logs[n].1 += 1;
                            print!("{ratio:>8.2}");
                        }
                        None => print!("{:>8}", "-"),
                    }
                }
                println!();
            }
            Err(why) => println!("{:<14} left out: {why}", kernel.name),
        }
    }
    print!("{:<14}{:>9}", "geometric mean", "");
    for (sum, count) in logs {
        print!("{:>8.2}", (sum / f64::from(count.max(1))).exp());
    }
    println!();
}

struct Row {
    c: f64,
    others: Vec<(&'static str, f64)>,
}

fn measure(kernel: &Kernel) -> Result<Row, String> {
    let mut contenders = vec![c::contender(kernel.name)?];
    contenders.extend(clif::contender(kernel.name)?);
    contenders.extend(brolga_code::contenders(kernel.name)?);
    let mut best = vec![f64::INFINITY; contenders.len()];
    let mut expected = None;
    for _ in 0..ROUNDS {
        for (contender, best) in contenders.iter().zip(&mut best) {
            let start = Instant::now();
            let value = (contender.run)(kernel.a, kernel.b)?;
            *best = best.min(start.elapsed().as_secs_f64());
            let expected = *expected.get_or_insert(value);
            if value.to_bits() != expected.to_bits() {
                return Err(format!("{} gives {value}, C gives {expected}", contender.column));
            }
        }
    }
    let others = contenders.iter().zip(&best).skip(1).map(|(c, &t)| (c.column, t)).collect();
    Ok(Row { c: best[0], others })
}
