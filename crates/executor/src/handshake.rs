//! The first messages of a connection: both sides say what they are and prove that they have the key.
//!
//! ```text
//!   controller                              executor
//!     Hello: facts, nonce ─────────────────►
//!                          ◄───────────────── Welcome: facts, nonce, seal of both
//!     Proof: seal of both, settings ───────►
//!                          ◄───────────────── Ready
//! ```
//!
//! The facts are the versions of the messages and of the library, the architecture, and the ABI id of generated code
//! ([`brolga_jit::abi::abi_of`]). Whoever finds a difference refuses by its name, in a message that the other side returns as its own
//! error. A seal covers both nonces and the facts of both sides, so it cannot be used again, nor by the other side.
//!
//! The key authenticates the two sides and, later, each program that is loaded. It does not hide the messages, and calls are not sealed: on
//! a network that others can write to, use a channel that protects them.

use std::io::{Read, Write};

use brolga_cache::{CacheKey, KeyError, Seal, nonce};
use brolga_ir::Arch;
use brolga_jit::abi::abi_of;
use brolga_runtime::heap::DEFAULT_ABI;
use serde::{Deserialize, Serialize};

use crate::settings::Settings;
use crate::wire::{PROTOCOL, WireError, receive, send};

/// The first bytes of a connection.
const MAGIC: u64 = u64::from_le_bytes(*b"BRLGEXEC");

const OF_EXECUTOR: &str = "brolga executor: the executor has seen both nonces";
const OF_CONTROLLER: &str = "brolga executor: the controller has seen both nonces";

/// The facts about one side. Each has to be the same on the other one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Facts {
    magic: u64,
    protocol: u32,
    version: String,
    arch: String,
    abi: u64,
}

impl Facts {
    /// The facts about this process.
    pub(crate) fn new() -> Facts {
        Facts {
            magic: MAGIC,
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            arch: Arch::HOST.name().to_owned(),
            abi: abi_of(&DEFAULT_ABI),
        }
    }

    fn check(&self, theirs: &Facts) -> Result<(), HandshakeError> {
        let differ = |what, ours: &dyn ToString, theirs: &dyn ToString| {
            Err(HandshakeError::Differs { what, ours: ours.to_string(), theirs: theirs.to_string() })
        };
        if self.magic != theirs.magic {
            return Err(HandshakeError::Stranger);
        }
        if self.protocol != theirs.protocol {
            return differ(HandshakeFact::Protocol, &self.protocol, &theirs.protocol);
        }
        if self.version != theirs.version {
            return differ(HandshakeFact::Version, &self.version, &theirs.version);
        }
        if self.arch != theirs.arch {
            return differ(HandshakeFact::Architecture, &self.arch, &theirs.arch);
        }
        if self.abi != theirs.abi {
            let hex = |abi: u64| format!("{abi:016x}");
            return differ(HandshakeFact::Abi, &hex(self.abi), &hex(theirs.abi));
        }
        Ok(())
    }
}

/// A fact in which the two sides have to agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum HandshakeFact {
    /// The version of the messages.
    Protocol,
    /// The version of the library.
    Version,
    /// The architecture of the processor.
    Architecture,
    /// The ABI id of generated code.
    Abi,
}

impl std::fmt::Display for HandshakeFact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HandshakeFact::Protocol => "version of the messages",
            HandshakeFact::Version => "version",
            HandshakeFact::Architecture => "architecture",
            HandshakeFact::Abi => "ABI id",
        })
    }
}

/// Why two processes do not work together.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum HandshakeError {
    /// The other side speaks another protocol.
    #[error("the other process is not one of Brolga")]
    Stranger,
    /// The other side was built from other sources.
    #[error(
        "the other process has another {what}: {theirs}, and this one has {ours}; build both from the same sources"
    )]
    Differs {
        /// The fact.
        what: HandshakeFact,
        /// The fact about the process that refused.
        ours: String,
        /// The fact about the other one.
        theirs: String,
    },
    /// The other side does not have the key.
    #[error("the seal of the handshake is wrong: the two processes have different keys")]
    Seal,
    /// The executor cannot work with the settings.
    #[error("the executor cannot begin: {0}")]
    Settings(String),
}

/// Why a connection was not opened.
#[derive(thiserror::Error, Debug)]
pub enum OpenError {
    /// The connection failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// This process refused the other one.
    #[error(transparent)]
    Here(HandshakeError),
    /// The other process refused this one.
    #[error("refused by the other process: {0}")]
    There(HandshakeError),
    /// The system cannot provide random numbers.
    #[error(transparent)]
    Key(#[from] KeyError),
}

#[derive(Serialize, Deserialize)]
struct Hello {
    facts: Facts,
    nonce: [u8; 32],
}

#[derive(Serialize, Deserialize)]
enum Welcome {
    Known(Hello, [u8; 32]),
    Refused(HandshakeError),
}

#[derive(Serialize, Deserialize)]
enum Proof {
    Proven([u8; 32], Settings),
    Refused(HandshakeError),
}

#[derive(Serialize, Deserialize)]
enum Ready {
    Ready,
    Refused(HandshakeError),
}

/// The seal of a side that has seen both hellos.
fn seal(key: &CacheKey, purpose: &str, controller: &Hello, executor: &Hello) -> Result<Seal, WireError> {
    let bytes =
        |hello: &Hello| postcard::to_stdvec(hello).map_err(|error| WireError::Malformed(error.to_string()));
    Ok(key.seal(purpose, &[&bytes(controller)?, &bytes(executor)?]))
}

/// The other side closed the connection where a message was due.
const CLOSED: WireError = WireError::NotDue("the connection was closed");

/// Opens a connection as the controller.
///
/// # Errors
/// The connection failed, or one of the sides refuses the other.
pub(crate) fn open(
    stream: &mut (impl Read + Write),
    key: &CacheKey,
    facts: &Facts,
    settings: &Settings,
) -> Result<(), OpenError> {
    let buffer = &mut Vec::new();
    let own = Hello { facts: facts.clone(), nonce: nonce()? };
    send(stream, buffer, &own)?;
    let (theirs, proof) = match receive(stream, buffer)?.ok_or(CLOSED)? {
        Welcome::Known(hello, proof) => (hello, proof),
        Welcome::Refused(error) => return Err(OpenError::There(error)),
    };
    let fits = facts.check(&theirs.facts).and_then(|()| {
        let expected = seal(key, OF_EXECUTOR, &own, &theirs);
        match expected.is_ok_and(|expected| expected == Seal::of_bytes(proof)) {
            true => Ok(()),
            false => Err(HandshakeError::Seal),
        }
    });
    if let Err(error) = fits {
        send(stream, buffer, &Proof::Refused(error.clone()))?;
        return Err(OpenError::Here(error));
    }
    let proof = seal(key, OF_CONTROLLER, &own, &theirs)?;
    send(stream, buffer, &Proof::Proven(*proof.as_bytes(), settings.clone()))?;
    match receive(stream, buffer)?.ok_or(CLOSED)? {
        Ready::Ready => Ok(()),
        Ready::Refused(error) => Err(OpenError::There(error)),
    }
}

/// Opens a connection as the executor, which begins with the settings by `begin`.
///
/// # Errors
/// The connection failed, one of the sides refuses the other, or `begin` fails.
pub(crate) fn answer<T>(
    stream: &mut (impl Read + Write),
    key: &CacheKey,
    facts: &Facts,
    begin: impl FnOnce(&Settings) -> Result<T, String>,
) -> Result<T, OpenError> {
    let buffer = &mut Vec::new();
    let theirs: Hello = receive(stream, buffer)?.ok_or(CLOSED)?;
    if let Err(error) = facts.check(&theirs.facts) {
        // The controller may be gone; the reason is this one in any case.
        let _ = send(stream, buffer, &Welcome::Refused(error.clone()));
        return Err(OpenError::Here(error));
    }
    let own = Hello { facts: facts.clone(), nonce: nonce()? };
    let proof = seal(key, OF_EXECUTOR, &theirs, &own)?;
    let expected = seal(key, OF_CONTROLLER, &theirs, &own)?;
    send(stream, buffer, &Welcome::Known(own, *proof.as_bytes()))?;
    let settings = match receive(stream, buffer)?.ok_or(CLOSED)? {
        Proof::Proven(proof, settings) if Seal::of_bytes(proof) == expected => Ok(settings),
        Proof::Proven(..) => Err(HandshakeError::Seal),
        Proof::Refused(error) => return Err(OpenError::There(error)),
    };
    let begun = settings.and_then(|settings| begin(&settings).map_err(HandshakeError::Settings));
    match begun {
        Ok(begun) => {
            send(stream, buffer, &Ready::Ready)?;
            Ok(begun)
        }
        Err(error) => {
            let _ = send(stream, buffer, &Ready::Refused(error.clone()));
            Err(OpenError::Here(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// What the controller and the executor say to each other's facts and keys.
    fn meet(controller: (Facts, u8), executor: (Facts, u8)) -> (Result<(), String>, Result<(), String>) {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let other = std::thread::spawn(move || {
            let (facts, key) = executor;
            answer(&mut there, &CacheKey::new([key; 32]), &facts, |_| Ok(()))
                .map_err(|error| error.to_string())
        });
        let (facts, key) = controller;
        let opened = open(&mut here, &CacheKey::new([key; 32]), &facts, &Settings::default());
        (opened.map_err(|error| error.to_string()), other.join().unwrap())
    }

    #[test]
    fn both_sides_say_in_what_they_differ() {
        let facts = Facts::new();
        assert_eq!(meet((facts.clone(), 1), (facts.clone(), 1)), (Ok(()), Ok(())));
        let differing = [
            (Facts { protocol: 99, ..facts.clone() }, "version of the messages: 99"),
            (Facts { version: "0.0.9".into(), ..facts.clone() }, "version: 0.0.9"),
            (Facts { arch: "pdp11".into(), ..facts.clone() }, "architecture: pdp11"),
            (Facts { abi: 0xabc, ..facts.clone() }, "ABI id: 0000000000000abc"),
            (Facts { magic: 1, ..facts.clone() }, "not one of Brolga"),
        ];
        for (other, said) in differing {
            let (here, there) = meet((other, 1), (facts.clone(), 1));
            let (here, there) = (here.unwrap_err(), there.unwrap_err());
            assert!(here.starts_with("refused by the other process: "), "{here}");
            assert!(here.contains(said) && there.contains(said), "{here}\n{there}");
        }
        let (here, there) = meet((facts.clone(), 1), (facts, 2));
        assert!(here.unwrap_err().contains("different keys"));
        assert!(there.unwrap_err().contains("refused by the other process: the seal of the handshake"));
    }

    #[test]
    fn a_seal_of_another_connection_does_not_open_this_one() {
        let (key, facts) = (CacheKey::new([5; 32]), Facts::new());
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let executor = std::thread::spawn(move || {
            answer(&mut there, &CacheKey::new([5; 32]), &Facts::new(), |_| Ok(()))
        });
        let buffer = &mut Vec::new();
        let own = Hello { facts, nonce: [1; 32] };
        send(&mut here, buffer, &own).unwrap();
        let Some(Welcome::Known(theirs, _)) = receive(&mut here, buffer).unwrap() else { panic!() };
        // As recorded on a connection where the executor had another nonce.
        let recorded = Hello { nonce: [2; 32], facts: theirs.facts };
        let proof = seal(&key, OF_CONTROLLER, &own, &recorded).unwrap();
        send(&mut here, buffer, &Proof::Proven(*proof.as_bytes(), Settings::default())).unwrap();
        let refused = executor.join().unwrap().unwrap_err().to_string();
        assert!(refused.contains("the seal of the handshake is wrong"), "{refused}");
    }
}
