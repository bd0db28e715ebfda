//! A little SVG: boxes, arrows and lines of text, in the colours of the reader's theme.

use std::fmt::Write as _;

const STYLE: &str = "<style>\n\
    text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px;fill:#59636e}.mono{font-family:ui-monospace,monospace;font-size:12px}\n\
    .title{font-weight:600}.box{fill:#f6f8fa;stroke:#59636e}.line{stroke:#59636e;fill:none}.head{fill:#59636e}\n\
    .a{fill:#ddf4ff;stroke:#0969da}.b{fill:#dafbe1;stroke:#1a7f37}.c{fill:#fff8c5;stroke:#9a6700}.d{fill:#ffebe9;stroke:#cf222e}\n\
    @media (prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.box{fill:#161b22;stroke:#9198a1}.line{stroke:#9198a1}.head{fill:#9198a1}\n\
    .a{fill:#0c2d6b;stroke:#4493f8}.b{fill:#04260f;stroke:#3fb950}.c{fill:#341a00;stroke:#d29922}.d{fill:#490202;stroke:#f85149}}\n\
    </style>\n<defs><marker id=\"to\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto-start-reverse\">\
    <path class=\"head\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n";

/// A picture while it is drawn.
pub(crate) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Svg {
        Svg { body: String::new(), width, height }
    }

    /// A box with rounded corners, of a class of colours.
    pub(crate) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.push(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\"/>"
        ));
    }

    /// A line of text that begins at a place.
    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.push(&format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(text)));
    }

    /// A line of text around a place.
    pub(crate) fn centred(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.push(&format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
            escaped(text)
        ));
    }

    /// An arrow along a path of SVG.
    pub(crate) fn arrow(&mut self, path: &str) {
        self.push(&format!("<path class=\"line\" d=\"{path}\" marker-end=\"url(#to)\"/>"));
    }

    fn push(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// The whole file.
    pub(crate) fn finish(self, title: &str) -> String {
        let Svg { body, width, height } = self;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n"
        );
        // Writing to a string cannot fail.
        let _ = write!(text, "<title>{}</title>\n{STYLE}{body}</svg>\n", escaped(title));
        text
    }
}

/// Breaks a text into lines of so many characters at most.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
