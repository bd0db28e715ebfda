//! A session is visible through its socket: to its user, for as long as it is open.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use brolga_engine::{Options, Session, Workers};
use brolga_observe::{Watcher, serve};

const PROGRAM: &str = "
function twice(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, x)::Int64
└──      return %1
end
function never()::Nothing
1 ─      return nothing
end";

fn path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _gone = fs::remove_file(&path);
    path
}

fn session() -> Session {
    Session::new(Options::new(), Workers::Caller).unwrap()
}

#[test]
fn a_session_is_seen_while_it_is_shown() {
    let session = session();
    let path = path("seen");
    let served = serve(&session, &path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("p.jlir", PROGRAM.as_bytes()).unwrap().tiered(5)).unwrap();
    let twice = main.func::<(i64,), i64>("twice").unwrap();
    let mut watcher = Watcher::connect(&path).unwrap();
    let tier = |watcher: &mut Watcher, symbol: &str| {
        let snapshot = watcher.snapshot().unwrap();
        let row = snapshot.functions.iter().find(|row| row.symbol == symbol).unwrap().clone();
        (row.tier, row.calls, row.bytes > 0)
    };
    // The other function has not been looked up.
    let symbols: Vec<String> =
        watcher.snapshot().unwrap().functions.into_iter().map(|row| row.symbol).collect();
    assert_eq!(symbols, ["twice(Int64)"]);
    for _ in 0..3 {
        twice.call((1,)).unwrap();
    }
    assert_eq!(tier(&mut watcher, "twice(Int64)"), (Some(1), Some(3), true));
    for _ in 0..10 {
        twice.call((1,)).unwrap();
    }
    assert_eq!(tier(&mut watcher, "twice(Int64)"), (Some(1), Some(5), true));
    assert_eq!(session.optimize_hot(), 1);
    assert_eq!(tier(&mut watcher, "twice(Int64)"), (Some(2), None, true));
    let snapshot = watcher.snapshot().unwrap();
    assert_eq!((snapshot.pid, snapshot.upgrades), (std::process::id(), Some(1)));
    assert!(snapshot.compiling.is_some_and(|time| time > 0) && snapshot.code_in_use > 0);
    assert!(snapshot.functions.iter().any(|row| row.compiling.is_some()), "{snapshot:?}");
    drop(served);
    assert!(!path.exists());
    assert_eq!(watcher.snapshot().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert!(Watcher::connect(&path).is_err());
}

#[test]
fn files_and_sockets_of_others_are_left_alone() {
    let session = session();
    let path = path("taken");
    fs::write(&path, "mine").unwrap();
    assert_eq!(serve(&session, &path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    assert_eq!(serve(&session, &path).unwrap_err().kind(), ErrorKind::AddrInUse);
    // The listener is gone: the socket is stale.
    drop(listener);
    let served = serve(&session, &path).unwrap();
    assert!(Watcher::connect(served.path()).unwrap().snapshot().is_ok());
    assert!(serve(&session, path.join("below")).is_err());
    assert!(serve(&session, "/nowhere/at/all").is_err());
    let folder = path.parent().unwrap();
    let own = format!(".brolga-{}-", std::process::id());
    let left = fs::read_dir(folder).unwrap().filter_map(Result::ok);
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).count(), 0);
}

#[test]
fn malformed_requests_do_no_harm() {
    let session = session();
    let path = path("harm");
    let served = serve(&session, &path).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"\xff\xfe\n snapshot \r\n").unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("error"));
    assert!(lines.next().unwrap().unwrap().contains("functions"));
    // The server may have ended the connection before all of it was written.
    let _written = stream.write_all(&[b'x'; 10_000]);
    assert!(lines.next().is_none_or(|line| line.is_err()));
    // More connections without a request than are served.
    let idle: Vec<UnixStream> = (0..40).map(|_| UnixStream::connect(&path).unwrap()).collect();
    drop(idle);
    assert!((0..1000).any(|_| {
        let again = Watcher::connect(&path).and_then(|mut watcher| watcher.snapshot());
        std::thread::yield_now();
        again.is_ok()
    }));
    drop(served);
}
