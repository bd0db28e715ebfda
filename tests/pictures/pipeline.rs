//! The pipeline, from the lists of steps that the pass manager runs.

use brolga::OptLevel;
use brolga::ir::Level;
use brolga_opt::pipeline::stage;

use crate::svg::Svg;

const WIDTH: f64 = 880.0;
const STEP: (f64, f64) = (138.0, 22.0);
const COLUMNS: usize = 6;

/// The lowest level that takes a step.
fn lowest(label: &str, ir: Level) -> OptLevel {
    let takes = |level: &OptLevel| stage(*level, ir).iter().any(|step| step.label == label);
    OptLevel::ALL.into_iter().find(takes).unwrap()
}

pub(crate) fn picture() -> String {
    let all = [stage(OptLevel::O3, Level::High), stage(OptLevel::O3, Level::Low)];
    let rows = all.each_ref().map(|steps| steps.len().div_ceil(COLUMNS) as f64);
    let mut svg = Svg::new(WIDTH, 262.0 + (rows[0] + rows[1]) * (STEP.1 + 6.0));
    let bar = |svg: &mut Svg, y: f64, title: &str, about: &str| {
        svg.rect("box", (10.0, y), (WIDTH - 20.0, 26.0));
        svg.text("title", (20.0, y + 18.0), title);
        svg.text("small", (230.0, y + 17.0), about);
    };
    let down = |svg: &mut Svg, y: f64| svg.arrow(&format!("M 60 {y} v 12"));
    bar(&mut svg, 10.0, "text, dumps, builder", "read and verified: the door that everything enters by");
    let mut y = 36.0;
    let titles = [
        ("High IR", "what Julia calls typed, optimised SSA IR"),
        ("Low IR", "loads, stores, address arithmetic, pointer classes"),
    ];
    for ((steps, (title, about)), ir) in all.iter().zip(titles).zip([Level::High, Level::Low]) {
        down(&mut svg, y);
        svg.text("title", (20.0, y + 30.0), title);
        svg.text("small", (90.0, y + 30.0), about);
        for (at, step) in steps.iter().enumerate() {
            let place = (
                16.0 + (at % COLUMNS) as f64 * (STEP.0 + 4.0),
                y + 38.0 + (at / COLUMNS) as f64 * (STEP.1 + 6.0),
            );
            let class = ["box", "b", "a", "c"][lowest(step.label, ir) as usize];
            svg.rect(class, place, STEP);
            svg.centred("small", (place.0 + STEP.0 / 2.0, place.1 + 15.0), step.label);
        }
        y += 40.0 + steps.len().div_ceil(COLUMNS) as f64 * (STEP.1 + 6.0);
        if ir == Level::High {
            down(&mut svg, y);
            bar(
                &mut svg,
                y + 13.0,
                "lower",
                "operations on objects become loads, stores and calls of the run time",
            );
            y += 39.0;
        }
    }
    down(&mut svg, y);
    bar(&mut svg, y + 13.0, "place roots", "frames say where objects are; no pass runs behind it");
    down(&mut svg, y + 39.0);
    bar(
        &mut svg,
        y + 52.0,
        "CLIF, machine code",
        "by Cranelift; the first tier's code is made in a single pass",
    );
    y += 100.0;
    for (n, (class, level)) in
        [("box", "from O0"), ("b", "from O1"), ("a", "from O2"), ("c", "from O3")].into_iter().enumerate()
    {
        let x = 16.0 + n as f64 * 110.0;
        svg.rect(class, (x, y), (18.0, 18.0));
        svg.text("small", (x + 26.0, y + 13.0), level);
    }
    svg.finish("Steps on the way of a function from text to machine code, by level of optimisation")
}
