//! The kernels: C, Cranelift alone, Brolga and other compilers, side by side in one run.
//!
//! ```text
//! cargo bench --bench kernels [-- NAME…]
//! cargo bench --bench kernels -- --julia [NAME…]                the second half alone; --pointers: the first
//! cargo bench --bench kernels -- --pointers --plot              writes docs/pictures/kernels.svg as well
//! cargo bench --bench kernels -- --print NAME                   the IR of a kernel of the second half
//! cargo bench --bench kernels -- --without-passes [NAME…]       writes docs/passes.md; with --julia it prints the rows alone
//!
//!   kernel      C ms   clif   -O0   -O1   -O2   -O3  clang   java   node  luajit      columns after the first: time ÷ C
//! ```
//!
//! | column | what runs |
//! |---|---|
//! | C | the kernel's C source, built by the system C compiler at `-O2` |
//! | clif | hand-written Cranelift IR of the same loops, at Cranelift's best setting (`clif/`) |
//! | -O*n* | `examples/NAME.jlir` through the whole pipeline; in the second table `julia/NAME.jl` by way of the front end in `tests/support/front` |
//! | clang | the C source by clang at `-O2` |
//! | java, node, luajit | the same kernel in that language, warm (`elsewhere`) |
//!
//! The contenders take turns, and each keeps its best time: a disturbance of the machine then affects all
//! of them. A system that is not installed has no column. Times are the thread's own processor time. Every result is compared with C's.
//! A kernel without a C compiler or a source on this machine is left out, with a message.

mod brolga_code;
mod c;
mod clif;
mod clock;
mod elsewhere;
#[path = "../../tests/support/front/mod.rs"]
mod front;
mod plot;
mod without;

/// A kernel and the size to run it at: large enough for milliseconds, small enough for many rounds.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    name: &'static str,
    a: i64,
    b: i64,
    /// The program is `julia/NAME.jl`, not `examples/NAME.jlir`.
    is_julia: bool,
}

const fn kernel(name: &'static str, a: i64, b: i64) -> Kernel {
    Kernel { name, a, b, is_julia: false }
}

const fn julia(name: &'static str, a: i64, b: i64) -> Kernel {
    Kernel { name, a, b, is_julia: true }
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

/// Kernels as a front end prints them: checked vectors, ranges, iteration, mutable structs, closures, strings.
const JULIA: &[Kernel] = &[
    julia("axpy_f64", 2_048, 2_000),
    julia("dot_f64", 2_048, 1_500),
    julia("crc32", 262_144, 4),
    julia("matmul_ijk", 128, 3),
    julia("matmul_ikj", 128, 6),
    julia("nbody", 50_000, 0),
    julia("nqueens", 10, 0),
    julia("quicksort", 5_000, 20),
    julia("sieve", 500_000, 3),
    julia("spectral_norm", 200, 0),
    julia("bfs", 20_000, 4),
    julia("bigmul", 300, 40),
    julia("bitsieve", 1_000_000, 2),
    julia("blur", 256, 10),
    julia("closures", 4_096, 200),
    julia("fft", 13, 4),
    julia("floyd", 128, 2),
    julia("hash_table", 30_000, 4),
    julia("histogram", 200_000, 5),
    julia("kmeans", 10_000, 10),
    julia("lcs", 1_000, 2),
    julia("life", 256, 20),
    julia("lu", 128, 3),
    julia("matvec", 256, 20),
    julia("merge", 20_000, 20),
    julia("pairs", 1_000, 4),
    julia("priority_queue", 20_000, 2),
    julia("regex", 20_000, 3),
    julia("search", 2_048, 1_000),
    julia("sort_structs", 20_000, 3),
    julia("spmv", 2_000, 40),
    julia("stencil", 256, 20),
    julia("sums", 2_048, 1_000),
    julia("tokens", 10_000, 0),
    julia("tree_map", 20_000, 2),
    julia("unionfind", 50_000, 2),
    julia("varint", 50_000, 5),
    julia("vm", 200_000, 2),
    julia("words", 100_000, 10),
];

/// How often each contender runs; the best run counts.
const ROUNDS: usize = 12;

/// The result and time of one run of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    /// The result.
    pub(crate) value: f64,
    /// How long it took.
    pub(crate) seconds: f64,
}

/// One implementation of a kernel, ready to run.
pub(crate) struct Contender {
    /// Its column.
    pub(crate) column: &'static str,
    /// It takes the best of several calls itself.
    pub(crate) once: bool,
    /// Runs it.
    pub(crate) run: Box<dyn Fn(i64, i64) -> Result<Timed, String>>,
}

/// A contender that runs in this thread.
pub(crate) fn here(
    column: &'static str,
    call: impl Fn(i64, i64) -> Result<f64, String> + 'static,
) -> Contender {
    let run = move |a, b| {
        let start = clock::cpu_seconds();
        let value = call(a, b)?;
        Ok(Timed { value, seconds: clock::cpu_seconds() - start })
    };
    Contender { column, once: false, run: Box::new(run) }
}

fn main() {
    // `cargo bench` passes its own flags; names of kernels are what is left.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let chosen = |of: &[Kernel]| -> Vec<Kernel> {
        of.iter().filter(|k| wanted.is_empty() || wanted.iter().any(|w| w == k.name)).copied().collect()
    };
    let is_julia_alone = std::env::args().any(|a| a == "--julia");
    if std::env::args().any(|a| a == "--without-passes") {
        return without::report(&chosen(if is_julia_alone { JULIA } else { KERNELS }), is_julia_alone);
    }
    if std::env::args().any(|a| a == "--print") {
        for kernel in chosen(JULIA) {
            match brolga_code::text(&kernel) {
                Ok(text) => print!("{text}"),
                Err(why) => eprintln!("{}: {why}", kernel.name),
            }
        }
        return;
    }
    if !is_julia_alone {
        let (columns, rows) = table(&chosen(KERNELS));
        if std::env::args().any(|a| a == "--plot") {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures/kernels.svg");
            match std::fs::write(path, plot::svg(&columns, &rows)) {
                Ok(()) => eprintln!("wrote {path}"),
                Err(why) => eprintln!("{path}: {why}"),
            }
        }
    }
    if !std::env::args().any(|a| a == "--pointers") {
        let _ratios = table(&chosen(JULIA));
    }
}

/// The ratios of a table by column, for each row.
type Ratios = (Vec<&'static str>, Vec<(String, Vec<Option<f64>>)>);

/// Prints the table as it is measured.
fn table(kernels: &[Kernel]) -> Ratios {
    let mut ratios: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    let columns: Vec<&'static str> = std::iter::once("clif")
        .chain(brolga_code::LEVELS.map(|(column, _)| column))
        .chain(["clang"])
        .chain(elsewhere::COLUMNS)
        .collect();
    println!(
        "{:<14}{:>9}{}",
        "kernel",
        "C ms",
        columns.iter().map(|c| format!("{c:>8}")).collect::<String>()
    );
    let mut logs: Vec<(f64, u32)> = vec![(0.0, 0); columns.len()];
    for kernel in kernels {
        match measure(kernel) {
            Ok(row) => {
                print!("{:<14}{:>9.3}", kernel.name, row.c * 1e3);
                let of = |column: &&str| row.others.iter().find(|(c, _)| c == column).map(|(_, t)| t / row.c);
                ratios.push((kernel.name.to_owned(), columns.iter().map(of).collect()));
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
        match count {
            0 => print!("{:>8}", "-"),
            _ => print!("{:>8.2}", (sum / f64::from(count)).exp()),
        }
    }
    println!();
    (columns, ratios)
}

struct Row {
    c: f64,
    others: Vec<(&'static str, f64)>,
}

fn measure(kernel: &Kernel) -> Result<Row, String> {
    let mut contenders = vec![c::contender(kernel.name)?];
    if !kernel.is_julia {
        contenders.extend(clif::contender(kernel.name)?);
        contenders.extend(elsewhere::contenders(kernel.name));
    }
    contenders.extend(brolga_code::contenders(kernel)?);
    contenders.extend(c::by_clang(kernel.name));
    let times = race(kernel, &contenders, ROUNDS)?;
    let timed = contenders.iter().zip(&times).skip(1).filter(|(_, t)| t.is_finite());
    let others = timed.map(|(c, &t)| (c.column, t)).collect();
    Ok(Row { c: times[0], others })
}

/// The best time of each contender; all must give the same.
pub(crate) fn race(kernel: &Kernel, contenders: &[Contender], rounds: usize) -> Result<Vec<f64>, String> {
    let mut best = vec![f64::INFINITY; contenders.len()];
    let mut expected = None;
    for round in 0..rounds {
        for (contender, best) in contenders.iter().zip(&mut best) {
            if contender.once && round > 0 {
                continue;
            }
            let Timed { value, seconds } = match (contender.run)(kernel.a, kernel.b) {
                Ok(timed) => timed,
                // Another compiler's trouble is not ours.
                Err(why) if contender.once => {
                    eprintln!("{} by {}: {why}", kernel.name, contender.column);
                    continue;
                }
                Err(why) => return Err(why),
            };
            *best = best.min(seconds);
            let expected = *expected.get_or_insert(value);
            if value.to_bits() != expected.to_bits() {
                return Err(format!("{} gives {value}, the first gives {expected}", contender.column));
            }
        }
    }
    Ok(best)
}

#[path = "../../tests/support/doors.rs"]
mod doors;
