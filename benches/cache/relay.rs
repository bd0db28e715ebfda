//! A relay between clients and a server: bytes arrive after a delay in each direction, and in order.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use super::Done;

/// A port of this machine that is passed on. Its threads end with the process.
pub(crate) struct Relay {
    port: u16,
}

impl Relay {
    /// Passes connections on to a port of this machine; each direction takes `delay` longer.
    pub(crate) fn start(to: u16, delay: Duration) -> Done<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                for stream in [&client, &server] {
                    let _ = stream.set_nodelay(true);
                }
                let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else {
                    continue;
                };
                pass(from_client, server, delay);
                pass(from_server, client, delay);
            }
        });
        Ok(Relay { port })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// One direction: a thread reads, and another one writes when it is time.
fn pass(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, receiver) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + delay, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
