//! `brolga top SOCKET`: a session of another process, as it runs.
//!
//! On a terminal the view takes the whole screen, in non-canonical mode without echo; both are undone at its end, also after an error.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use brolga::observe::{Snapshot, Watcher, view};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::Done;
use super::report::{Stop, err, out};

/// Shows a running session: functions by tier, calls, code and heap memory, what waits.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The process opens the socket: `brolga run FILE --tiered=100 --top SOCKET`, or `observe::serve` of the library. Keys: `s` sorts by the next column, \
                        `q` leaves.\n\nExamples:\n  brolga top /tmp/session\n  brolga top /tmp/session --once --sort=code"
)]
pub(crate) struct Args {
    /// The socket that the process has opened
    socket: PathBuf,
    /// Print the session once, and end
    #[arg(long)]
    once: bool,
    /// Print it as one line of JSON, and end
    #[arg(long, conflicts_with_all = ["once", "sort"])]
    json: bool,
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// The column by which functions are sorted: `tier`, `calls`, `code`, `compile` or `name`
    #[arg(long, value_name = "COLUMN", default_value = "tier", value_parser = sort)]
    sort: view::SortBy,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.05..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "an interval is from 0.05 to 3600 seconds".to_owned())
}

fn sort(text: &str) -> Result<view::SortBy, String> {
    let columns = || view::SortBy::ALL.map(view::SortBy::name).join("`, `");
    view::SortBy::from_name(text).ok_or_else(|| format!("columns are `{}`", columns()))
}

pub(crate) fn run(args: &Args) -> Done {
    let cannot =
        |error: io::Error| Stop::System(format!("cannot watch `{}`: {error}", args.socket.display()));
    let mut watcher = Watcher::connect(&args.socket).map_err(cannot)?;
    if args.json {
        return out(watcher.snapshot().map_err(cannot)?.to_json());
    }
    if args.once || !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let lines = view::lines(&watcher.snapshot().map_err(cannot)?, args.sort, usize::MAX, usize::MAX);
        return out(lines.join("\n"));
    }
    let ended = {
        let screen =
            Screen::take().map_err(|error| Stop::System(format!("the terminal refuses: {error}")))?;
        watch(&mut watcher, args, &screen)
    };
    match ended {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            err("the session has ended");
            Ok(())
        }
        other => other.map_err(cannot),
    }
}

/// Draws snapshots until a key or the session ends it.
fn watch(watcher: &mut Watcher, args: &Args, screen: &Screen) -> io::Result<()> {
    let mut sort = args.sort;
    loop {
        let snapshot = watcher.snapshot()?;
        loop {
            screen.draw(&snapshot, sort)?;
            match screen.key(args.interval)? {
                None => break,
                Some(b'q' | b'Q' | 3 | 4) => return Ok(()),
                Some(b's') => {
                    let at = view::SortBy::ALL.iter().position(|known| *known == sort).unwrap_or(0);
                    sort = view::SortBy::ALL[(at + 1) % view::SortBy::ALL.len()];
                }
                Some(_) => {}
            }
        }
    }
}

/// The terminal, as it was before the view.
struct Screen {
    before: Termios,
}

impl Screen {
    fn take() -> io::Result<Screen> {
        let before = tcgetattr(io::stdin())?;
        let mut mode = before.clone();
        // Interrupts are keys as well, so that the screen is always given back.
        mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        mode.special_codes[SpecialCodeIndex::VMIN] = 0;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &mode)?;
        let screen = Screen { before };
        // The other screen, without a cursor.
        screen.write("\x1b[?1049h\x1b[?25l")?;
        Ok(screen)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(text.as_bytes())?;
        output.flush()
    }

    fn draw(&self, snapshot: &Snapshot, sort: view::SortBy) -> io::Result<()> {
        let size = tcgetwinsize(io::stdout())?;
        // A terminal that cannot tell its size reports zero.
        let or = |cells: u16, usual: usize| if cells == 0 { usual } else { usize::from(cells) };
        let (height, width) = (or(size.ws_row, 24), or(size.ws_col, 80));
        let mut lines = view::lines(snapshot, sort, height.saturating_sub(1), width);
        let keys = format!("sorted by {} (s)   leave (q)", sort.name());
        lines.push(keys.chars().take(width).collect());
        // Each line overwrites the old one and clears its rest, then the remaining lines are cleared: nothing flickers.
        let drawn: Vec<String> = lines.iter().map(|line| format!("{line}\x1b[K")).collect();
        self.write(&format!("\x1b[H{}\x1b[J", drawn.join("\r\n")))
    }

    /// The next key; none after the interval.
    fn key(&self, interval: Duration) -> io::Result<Option<u8>> {
        let stdin = io::stdin();
        let mut waited = [PollFd::new(&stdin, PollFlags::IN)];
        let interval = Timespec::try_from(interval).map_err(io::Error::other)?;
        match poll(&mut waited, Some(&interval)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
            Ok(_) => {
                let mut byte = [0];
                // The end of the input ends the view: it would otherwise be polled again forever.
                Ok(Some(if rustix::io::read(&stdin, &mut byte)? == 0 { b'q' } else { byte[0] }))
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _gone = self.write("\x1b[?25h\x1b[?1049l");
        let _refused = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}
