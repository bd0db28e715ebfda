//! Blocks of rows under construction, and how they are printed.

use std::fmt::Write as _;

/// An operand and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) ty: String,
}

impl Value {
    pub(crate) fn new(text: &str, ty: &str) -> Self {
        Value { text: text.to_owned(), ty: ty.to_owned() }
    }
}

enum Row {
    Plain(usize, String),
    Phi(usize, Vec<(usize, String)>, String),
}

enum End {
    Open,
    Text(String),
    Jump(usize),
    /// Continues at the next block if the operand is true.
    Unless(String, usize),
}

struct Block {
    rows: Vec<Row>,
    end: End,
}

/// The blocks of a function; they are printed in the order in which they were started.
#[derive(Default)]
pub(crate) struct Rows {
    blocks: Vec<Block>,
    order: Vec<usize>,
    current: Option<usize>,
    values: usize,
}

impl Rows {
    pub(crate) fn create(&mut self) -> usize {
        self.blocks.push(Block { rows: Vec::new(), end: End::Open });
        self.blocks.len() - 1
    }

    pub(crate) fn start(&mut self, block: usize) {
        self.order.push(block);
        self.current = Some(block);
    }

    pub(crate) fn start_new(&mut self) -> usize {
        let block = self.create();
        self.start(block);
        block
    }

    pub(crate) fn current(&self) -> usize {
        self.current.expect("a block is open")
    }

    pub(crate) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// Leaves the present block, whose end comes later.
    pub(crate) fn leave(&mut self) {
        self.current = None;
    }

    pub(crate) fn end(&mut self, text: &str) {
        let block = self.current();
        self.blocks[block].end = End::Text(text.to_owned());
        self.current = None;
    }

    pub(crate) fn jump(&mut self, from: usize, to: usize) {
        self.blocks[from].end = End::Jump(to);
    }

    /// Ends the present block with a jump.
    pub(crate) fn goto(&mut self, to: usize) {
        let from = self.current();
        self.jump(from, to);
        self.current = None;
    }

    /// Ends the present block: `no` is next if the operand is false, else a new block, which is started.
    pub(crate) fn unless(&mut self, cond: &str, no: usize) {
        let block = self.current();
        self.blocks[block].end = End::Unless(cond.to_owned(), no);
        self.start_new();
    }

    fn push(&mut self, row: Row) {
        let block = self.current();
        self.blocks[block].rows.push(row);
    }

    pub(crate) fn row(&mut self, text: &str, ty: &str) -> Value {
        self.values += 1;
        self.push(Row::Plain(self.values, format!("{text}::{ty}")));
        Value { text: format!("%{}", self.values), ty: ty.to_owned() }
    }

    /// A row without a type.
    pub(crate) fn bare(&mut self, text: &str) -> String {
        self.values += 1;
        self.push(Row::Plain(self.values, text.to_owned()));
        format!("%{}", self.values)
    }

    pub(crate) fn phi(&mut self, operands: Vec<(usize, String)>, ty: &str) -> Value {
        self.values += 1;
        self.push(Row::Phi(self.values, operands, ty.to_owned()));
        Value { text: format!("%{}", self.values), ty: ty.to_owned() }
    }

    /// Adds an operand to a φ.
    pub(crate) fn add_operand(&mut self, phi: &Value, from: usize, value: &str) {
        for block in &mut self.blocks {
            for row in &mut block.rows {
                if let Row::Phi(number, operands, _) = row
                    && phi.text == format!("%{number}")
                {
                    operands.push((from, value.to_owned()));
                }
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut places = vec![0; self.blocks.len()];
        for (n, &block) in self.order.iter().enumerate() {
            places[block] = n + 1;
        }
        let mut text = String::new();
        for (n, &block) in self.order.iter().enumerate() {
            let block = &self.blocks[block];
            let mut guard = format!("{} ┄", n + 1);
            for row in &block.rows {
                let _ = match row {
                    Row::Plain(number, row) => writeln!(text, "{guard} %{number} = {row}"),
                    Row::Phi(number, operands, ty) => {
                        let operands: Vec<String> =
                            operands.iter().map(|(b, v)| format!("#{} => {v}", places[*b])).collect();
                        writeln!(text, "{guard} %{number} = φ ({})::{ty}", operands.join(", "))
                    }
                };
                "│".clone_into(&mut guard);
            }
            if guard == "│" {
                "└──".clone_into(&mut guard);
            }
            let _ = match &block.end {
                End::Open => panic!("a block without an end:\n{text}"),
                End::Text(end) => writeln!(text, "{guard} {end}"),
                End::Jump(to) => writeln!(text, "{guard} goto #{}", places[*to]),
                End::Unless(cond, no) => writeln!(text, "{guard} goto #{} if not {cond}", places[*no]),
            };
        }
        text
    }
}
