//! How an executor was lost.

/// The process of an executor is gone, or does not work any more.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("the executor was lost: {}", self.describe())]
pub struct ExecutorLost {
    /// The signal that ended it, such as 11 for a wild pointer.
    pub signal: Option<i32>,
    /// Its exit status, if it ended by itself.
    pub status: Option<i32>,
    /// Why this process has ended it, if it has.
    pub ended: Option<Ending>,
}

/// Why the controller has ended an executor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The controller was told to.
    Requested,
    /// It did not answer a call in time.
    NoAnswer,
    /// It sent something that is not a message, or not one that was due.
    Message(String),
    /// It closed a connection, and did not end.
    Closed,
}

impl ExecutorLost {
    fn describe(&self) -> String {
        match (&self.ended, self.signal, self.status) {
            (Some(Ending::Requested), ..) => "it was ended by the controller".to_owned(),
            (Some(Ending::NoAnswer), ..) => "it did not answer in time, and was ended".to_owned(),
            (Some(Ending::Message(error)), ..) => format!("{error}; it was ended"),
            (Some(Ending::Closed), ..) => "it closed its connection, and was ended".to_owned(),
            (None, Some(signal), _) => format!("signal {signal}{}", name_of(signal)),
            (None, None, Some(status)) => format!("it ended with status {status}"),
            (None, None, None) => "its process is gone".to_owned(),
        }
    }
}

fn name_of(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic)",
        9 => " (killed)",
        11 => " (wild pointer or stack overflow)",
        15 => " (terminated)",
        24 => " (limit of processor time)",
        _ => "",
    }
}
