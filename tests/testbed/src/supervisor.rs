//! A server process, and the shell beside it that ends it when nobody else can any more.

use std::{
    ffi::OsStr,
    fs,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::account::Account;

/// Starts the server and waits on a pipe for the name of the signal with which to end it. The pipe also ends when the
/// process that holds its other end is killed: no destructor runs then, and yet the server must not be left behind.
///
/// That death may leave a process group in which a frozen server is; the kernel hangs up on such a group. And a shell lets
/// what it starts in the background ignore the signals that are to end it, unless that is undone.
const SCRIPT: &str = r#"trap '' HUP
log=$1; shift
env --default-signal=INT,QUIT "$@" </dev/null >>"$log" 2>&1 &
echo $!
read -r signal || signal=QUIT
kill -s "$signal" $!
kill -s CONT $! $(cat /proc/$!/task/$!/children)
wait $!"#;

/// A running server. Dropping it ends the server at once.
#[derive(Debug)]
pub(crate) struct Supervisor {
    shell: Child,
    server: Pid,
    ended: bool,
}

impl Supervisor {
    /// Starts `program`; what it prints is appended to `log`.
    pub(crate) fn start<A: AsRef<OsStr>>(
        account: Account,
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        log: &Path,
    ) -> io::Result<Self> {
        let mut shell = account
            .command("/bin/sh")
            .args(["-c", SCRIPT, "supervisor"])
            .arg(log)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = shell.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let server = line.trim().parse().ok().and_then(Pid::from_raw);
        let no_pid = || io::Error::other(format!("no process id from the shell, but {line:?}"));
        Ok(Self { server: server.ok_or_else(no_pid)?, shell, ended: false })
    }

    /// The server's main process.
    pub(crate) fn pid(&self) -> i32 {
        self.server.as_raw_nonzero().get()
    }

    /// Whether the main process has ended by itself. It keeps its id until [`end`](Self::end): nobody waited for it.
    pub(crate) fn has_exited(&self) -> bool {
        !is_there(self.server)
    }

    /// Sends a signal to the main process, and to all its children: each of PostgreSQL's leads a session of its own, so
    /// there is no process group to signal. The main process comes first when it is to be stopped, so that no child is
    /// missed, and last when it goes on. What is to be stopped has stopped, to its last thread, when this returns.
    pub(crate) fn signal_all(&self, signal: Signal) {
        let server = [self.server];
        if signal == Signal::CONT {
            send(&self.children(), signal);
            send(&server, signal);
        } else {
            send(&server, signal);
            send(&self.children(), signal);
        }
        if signal == Signal::STOP {
            // It takes effect on one thread after the other, and the main process may have had another child before its turn.
            while server.into_iter().chain(self.children()).any(has_running_threads) {
                send(&self.children(), signal);
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Ends the server by this signal, waits until its main process is gone, and takes all children with it if they
    /// were to be killed.
    pub(crate) fn end(&mut self, signal: Signal) -> io::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let name = match signal {
            Signal::KILL => "KILL",
            Signal::INT => "INT",
            _ => "QUIT",
        };
        if signal == Signal::KILL {
            // Stopped first: then there is no child that we do not know of, and nobody to notice and to start anew.
            self.signal_all(Signal::STOP);
            let children = self.children();
            send(&[self.server], signal);
            send(&children, signal);
            self.wait_for_shell(name)?;
            // What they have in common is in use as long as one of them is there.
            while children.iter().any(|&child| is_there(child)) {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        } else {
            // Frozen children would not end.
            self.signal_all(Signal::CONT);
            self.wait_for_shell(name)
        }
    }

    /// The shell ends the main process, if it is still there, and waits for it.
    fn wait_for_shell(&mut self, signal: &str) -> io::Result<()> {
        if let Some(mut pipe) = self.shell.stdin.take() {
            writeln!(pipe, "{signal}")?;
        }
        self.shell.wait().map(drop)
    }

    fn children(&self) -> Vec<Pid> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(Pid::from_raw)
            .filter(|&pid| stat(pid).is_some_and(|(_, parent)| parent == self.server))
            .collect()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The pipe closes with it in any case, and then the shell ends the server.
        let _ = self.end(Signal::QUIT);
    }
}

fn send(pids: &[Pid], signal: Signal) {
    for &pid in pids {
        // One that is gone needs no signal any more.
        let _ = kill_process(pid, signal);
    }
}

/// Whether it still has what it had: a zombie has nothing any more.
fn is_there(pid: Pid) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state.as_str(), "Z" | "X"))
}

fn has_running_threads(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let mut states = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| read_stat(&thread.path().join("stat")).map(|(state, _)| state));
    states.any(|state| !matches!(state.as_str(), "T" | "Z" | "X"))
}

/// State and parent of a process.
fn stat(pid: Pid) -> Option<(String, Pid)> {
    read_stat(format!("/proc/{}/stat", pid.as_raw_nonzero()).as_ref())
}

fn read_stat(file: &Path) -> Option<(String, Pid)> {
    let stat = fs::read_to_string(file).ok()?;
    // The name stands in parentheses and may contain anything, also parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), Pid::from_raw(fields.next()?.parse().ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with a child that has much memory to give back when it is killed, which takes a while.
    const LARGE: &str = "{ head -c 300000000 /dev/zero; exec sleep 1000; } | tail -c 300000000";
    /// So much it has in the end, in pages.
    const PAGES: u64 = 300_000_000 / 4096;

    fn resident(pid: Pid) -> Option<u64> {
        let statm = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok()?;
        statm.split_whitespace().nth(1)?.parse().ok()
    }

    #[test]
    fn a_server_that_is_killed_is_gone_with_all_its_children() {
        let account = Account::unprivileged().unwrap();
        let shell = Path::new("/bin/sh");
        let log = Path::new("/dev/null");
        // Two commands, so that the shell does not become the first.
        let script = format!("{LARGE}; true");
        let mut server = Supervisor::start(account, shell, ["-c", &script], log).unwrap();
        let large = loop {
            let children = server.children();
            let large = children.into_iter().find(|&child| resident(child) >= Some(PAGES));
            match large {
                Some(large) => break large,
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        assert!(is_there(large));
        server.end(Signal::KILL).unwrap();
        assert!(!is_there(large), "a child is left of a server that was killed");
    }

    /// Between a signal and its effect the main process may have another child.
    #[test]
    fn a_server_that_starts_children_all_the_time_is_stopped_with_all_of_them() {
        let script = "for i in $(seq 300); do sleep 1000 & done; sleep 1000";
        let (shell, log) = (Path::new("/bin/sh"), Path::new("/dev/null"));
        let account = Account::unprivileged().unwrap();
        let mut server = Supervisor::start(account, shell, ["-c", script], log).unwrap();
        while server.children().len() < 301 {
            server.signal_all(Signal::STOP);
            assert!(!server.children().into_iter().any(has_running_threads));
            server.signal_all(Signal::CONT);
        }
        server.end(Signal::KILL).unwrap();
    }
}
