//! Frames and messages.
//!
//! ```text
//!   frame:   length (4, little-endian) │ message in `postcard`
//! ```
//!
//! | connection | from the controller | from the executor |
//! |---|---|---|
//! | control | [`Request`], one after the other | [`Reply`] to each, except to `Cancel` |
//! | lane | [`Call`] | any number of [`Answer::Output`], then [`Answer::Done`] |
//!
//! A lane carries one call at a time; a controller has as many as it has calls under way. Both directions are read with the same limits: a
//! frame is at most [`MAX_FRAME`] bytes long, its memory is allocated as its bytes arrive, and a message must use all bytes of its frame.
//!
//! Cost: one write and one read for each message on a lane, which is read through a buffer.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::graph::{Graph, TypeList, WireType};

pub use crate::blob::Blob;

/// The version of the messages.
pub const PROTOCOL: u32 = 2;

/// The largest frame, in bytes.
pub const MAX_FRAME: u32 = 1 << 30;

/// The bytes that are allocated for a frame before any have arrived.
const FIRST: usize = 64 << 10;

/// Why a message could not be sent or received.
#[derive(thiserror::Error, Debug)]
pub enum WireError {
    /// The connection failed, or ended within a frame.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// A frame is longer than the limit.
    #[error("a message of {0} bytes is longer than the limit of {MAX_FRAME}")]
    TooLong(u64),
    /// The bytes of a frame are not a message.
    #[error("the bytes are not a message: {0}")]
    Malformed(String),
    /// A message of another kind was due.
    #[error("a message came that was not due: {0}")]
    NotDue(&'static str),
}

/// A request to the executor. The controller chooses the numbers of units and cells.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Load a sealed program as a unit.
    Load { unit: u32, program: Blob },
    /// Make a cell for the function with this symbol, which leads nowhere yet.
    Cell { cell: u32, symbol: String },
    /// Lead the calls of a cell to its function in a unit.
    Lead { cell: u32, unit: u32 },
    /// Forget a cell.
    Drop { cell: u32 },
    /// Forget a unit; its code is freed when no cell leads to it and no call runs it.
    Retire { unit: u32 },
    /// Set the global variables of a unit to their first values.
    Reset { unit: u32 },
    /// Take the connection that is sent with the next byte as a lane.
    Lane,
    /// End a call under way, or one that begins later with this number. Has no reply.
    Cancel { call: u64 },
    /// The facts that `Status` returns.
    Status,
}

/// The reply to a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// It was done.
    Done,
    /// It was not done.
    Refused(ExecutorRefusal),
    /// The facts that were requested.
    Status(Status),
}

/// The state of an executor.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The process.
    pub process: u32,
    /// Loaded units.
    pub units: u32,
    /// Cells.
    pub cells: u32,
    /// Bytes of code memory in use.
    pub code_bytes: u64,
}

/// A call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// A number that `Cancel` names.
    pub number: u64,
    /// The cell that is called.
    pub cell: u32,
    pub given: Given,
    pub limits: WireLimits,
}

/// The arguments of a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Given {
    /// Low values, for a function without objects.
    Low(Vec<LowArg>),
    /// Objects: the callee, then the arguments. The call is dispatched as a dynamic call of the program.
    Objects(Graph),
}

/// A low argument.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LowArg {
    /// The bits of a value.
    Bits(u128),
    /// An address of the executor's process, which the program vouches for.
    Pointer(u64),
    /// The bytes of a value that is passed in memory.
    Memory(Blob),
    /// Room for a result that is returned in memory, in bytes.
    Room(u32),
}

/// The result of a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Got {
    /// Low values, and the bytes of a result that is returned in memory.
    Low { results: Vec<u128>, room: Option<Blob> },
    /// An object.
    Object(Graph),
}

/// The limits of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WireLimits {
    /// The time until the deadline, in microseconds.
    pub microseconds: Option<u64>,
    /// The fuel.
    pub fuel: Option<u64>,
    /// Whether `Cancel` may name the call.
    pub has_token: bool,
}

/// A part of the answer to a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Text that the program has printed.
    Output(Blob),
    /// Text could not be written to the executor's standard output.
    Unwritten(Unwritten),
    /// The call is over.
    Done { outcome: Outcome, fuel: Option<u64> },
}

/// An error of the executor's standard output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unwritten {
    /// The system's number of the error.
    pub code: Option<i32>,
    pub text: String,
}

/// How a call ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// It returned.
    Returned(Got),
    /// It threw.
    Threw(Thrown),
    /// It reached a limit.
    Ended(WireEnded),
    /// It was not made, or has no result.
    Refused(ExecutorRefusal),
}

/// The limit that a call has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WireEnded {
    Deadline,
    Cancelled,
    Fuel,
}

/// An exception.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Thrown {
    /// Its position among the kinds of exceptions.
    pub kind: u32,
    pub lead: String,
    pub message: String,
    pub ty: WireType,
    /// The types that `ty` is one of.
    pub types: TypeList,
    /// The frames that it came from.
    pub trace: Vec<ThrownFrame>,
}

/// An activation in the trace of an exception.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ThrownFrame {
    /// Its address in the executor.
    pub address: u64,
    pub function: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub inlined: bool,
}

/// Why the executor has not done what was requested.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum ExecutorRefusal {
    /// It has no such unit.
    #[error("the executor has no unit {0}")]
    NoUnit(u32),
    /// It has no such cell.
    #[error("the executor has no cell {0}")]
    NoCell(u32),
    /// There is such a unit or cell already.
    #[error("the executor has a unit or cell {0} already")]
    Taken(u32),
    /// The cell leads to no unit.
    #[error("the function `{0}` has no code")]
    NoCode(String),
    /// The seal is not of the key of this connection, or the program was changed.
    #[error("the seal of a program does not fit its bytes and the key")]
    Seal,
    /// The program cannot be read.
    #[error("a program cannot be read: {0}")]
    Program(String),
    /// The code cannot be linked, or the function cannot be looked up.
    #[error("{0}")]
    Link(String),
    /// The arguments are not values of the program.
    #[error("the values of a call cannot be read: {0}")]
    Values(String),
    /// Values do not fit the function, or have no counterpart.
    #[error("{0}")]
    Call(String),
    /// The limit is fuel, and no program has prices.
    #[error("nothing takes fuel: programs get prices by `Options::fuel`")]
    NoPrices,
    /// The system refused a thread, memory or a connection.
    #[error("the system refused: {0}")]
    System(String),
}

/// Writes a message as one frame.
pub fn send<T: Serialize>(
    stream: &mut impl Write,
    buffer: &mut Vec<u8>,
    message: &T,
) -> Result<(), WireError> {
    frame(buffer, message)?;
    stream.write_all(buffer)?;
    stream.flush()?;
    buffer.shrink_to(FIRST);
    Ok(())
}

/// The frame of a message.
pub fn frame<T: Serialize>(buffer: &mut Vec<u8>, message: &T) -> Result<(), WireError> {
    buffer.clear();
    buffer.extend([0; 4]);
    let all = postcard::to_extend(message, std::mem::take(buffer));
    *buffer = all.map_err(|error| WireError::Malformed(error.to_string()))?;
    let length = (buffer.len() - 4) as u64;
    let short = u32::try_from(length).ok().filter(|&length| length <= MAX_FRAME);
    let Some(short) = short else { return Err(WireError::TooLong(length)) };
    buffer[..4].copy_from_slice(&short.to_le_bytes());
    Ok(())
}

/// Reads a message; `None` at the end of the connection.
pub fn receive<T: DeserializeOwned>(
    stream: &mut impl Read,
    buffer: &mut Vec<u8>,
) -> Result<Option<T>, WireError> {
    let mut length = [0; 4];
    let mut got = 0;
    while got < length.len() {
        match stream.read(&mut length[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = u32::from_le_bytes(length);
    if length > MAX_FRAME {
        return Err(WireError::TooLong(length.into()));
    }
    let length = length as usize;
    buffer.clear();
    if length <= FIRST {
        buffer.resize(length, 0);
        stream.read_exact(buffer)?;
    } else {
        buffer.reserve(FIRST);
        stream.by_ref().take(length as u64).read_to_end(buffer)?;
    }
    if buffer.len() != length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let message = decode(buffer);
    buffer.shrink_to(FIRST);
    message.map(Some)
}

/// The message in the bytes of a frame.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(WireError::Malformed(format!("{} bytes are left over", rest.len()))),
        Err(error) => Err(WireError::Malformed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
        let large = Request::Load { unit: 7, program: Blob(vec![3; 3 * FIRST]) };
        let all = [Request::Lane, large, Request::Cell { cell: 1, symbol: "f(Int64)".into() }];
        all.iter().for_each(|request| send(&mut bytes, &mut buffer, request).unwrap());
        let mut stream = bytes.as_slice();
        for request in &all {
            assert_eq!(receive::<Request>(&mut stream, &mut buffer).unwrap().as_ref(), Some(request));
        }
        assert!(receive::<Request>(&mut stream, &mut buffer).unwrap().is_none(), "the end");
        assert!(buffer.capacity() <= FIRST, "the buffer of a large message is not kept");
    }

    #[test]
    fn a_frame_is_one_message_and_no_more() {
        let mut buffer = Vec::new();
        let cut = |bytes: &[u8]| receive::<Request>(&mut { bytes }, &mut Vec::new()).unwrap_err().to_string();
        frame(&mut buffer, &Request::Lead { cell: 1, unit: 2 }).unwrap();
        assert!(cut(&buffer[..2]).contains("connection failed"));
        assert!(cut(&buffer[..6]).contains("connection failed"));
        buffer.push(0);
        buffer[0] += 1;
        assert!(cut(&buffer).contains("1 bytes are left over"));
        assert!(cut(&u32::MAX.to_le_bytes()).contains("longer than the limit"));
        assert!(cut(&[1, 0, 0, 0, 200]).contains("not a message"));
        // The length is a claim: nothing is allocated for bytes that do not come.
        assert!(cut(&[&MAX_FRAME.to_le_bytes()[..], &[0; 9]].concat()).contains("connection failed"));
    }
}
