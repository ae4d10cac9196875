//! What all private servers have in common: a process, a port, and files.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use rustix::process::Signal;

use crate::{
    launch::{Launch, on_a_free_port},
    sandbox::Sandbox,
    supervisor::Supervisor,
};

/// A server's process and its files. Dropping it ends the one at once and removes the others.
#[derive(Debug)]
pub(crate) struct Instance {
    /// What people call it.
    name: &'static str,
    sandbox: &'static Sandbox,
    pub(crate) data: PathBuf,
    port: u16,
    /// `None` while it is down.
    running: Option<Supervisor>,
}

/// The files of a server as they were while it was down. Dropping it removes them.
#[derive(Debug)]
pub struct Backup {
    files: PathBuf,
}

impl Instance {
    /// One without files that has not been started.
    pub(crate) fn new(name: &'static str, directory: &str) -> io::Result<Self> {
        let sandbox = Sandbox::of_this_process()?;
        Ok(Self { name, sandbox, data: sandbox.fresh_path(directory), port: 0, running: None })
    }

    /// The same with an empty directory for its files.
    pub(crate) fn empty(name: &'static str, directory: &str) -> io::Result<Self> {
        let instance = Self::new(name, directory)?;
        fs::create_dir(&instance.data)?;
        instance.sandbox.account().give(&instance.data)?;
        Ok(instance)
    }

    pub(crate) fn sandbox(&self) -> &'static Sandbox {
        self.sandbox
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.data.join("testbed.log")
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        self.running.as_ref().map(Supervisor::pid)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|server| !server.has_exited())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(server) = &self.running {
            server.signal_all(signal);
        }
    }

    pub(crate) fn end(&mut self, signal: Signal) -> io::Result<()> {
        self.running.take().map_or(Ok(()), |mut server| server.end(signal))
    }

    /// Starts it, where it was.
    pub(crate) fn launch(
        &mut self,
        program: &Path,
        arguments: &[String],
        takes_connections: impl Fn() -> bool,
    ) -> io::Result<()> {
        let launch = Launch { name: self.name, program, arguments, log: &self.log() };
        self.running = Some(launch.run(self.sandbox, takes_connections)?);
        Ok(())
    }

    fn copy_files(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.sandbox.copy(from, to)
    }

    pub(crate) fn back_up(&self) -> io::Result<Backup> {
        let backup = Backup { files: self.sandbox.fresh_path("backup") };
        self.copy_files(&self.data, &backup.files)?;
        Ok(backup)
    }

    pub(crate) fn restore(&self, backup: &Backup) -> io::Result<()> {
        fs::remove_dir_all(&self.data)?;
        self.copy_files(&backup.files, &self.data)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.running = None;
        // What is left, if anything, goes with the sandbox.
        let _ = fs::remove_dir_all(&self.data);
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.files);
    }
}

/// A server that runs as an instance.
pub(crate) trait Server {
    fn instance(&mut self) -> &mut Instance;

    /// Starts it, where it was.
    fn launch(&mut self) -> io::Result<()>;

    /// Starts it on a port that is free; if it is taken meanwhile, its log has these words.
    fn launch_anew(&mut self, taken: &str) -> io::Result<()> {
        on_a_free_port(taken, |port| {
            self.instance().port = port;
            self.launch()
        })
    }
}

/// What every server can do, on a type with a field `instance`; and if it can be shut down in an orderly way, by a
/// signal, what can be done to its files.
macro_rules! handles {
    ($server:ty) => {
        impl $server {
            /// Where it listens.
            #[must_use]
            pub fn addr(&self) -> std::net::SocketAddr {
                self.instance.addr()
            }

            /// Where its files are, among them its [`log`](Self::log).
            #[must_use]
            pub fn data(&self) -> &std::path::Path {
                &self.instance.data
            }

            /// What it has printed since it was started.
            #[must_use]
            pub fn log(&self) -> std::path::PathBuf {
                self.instance.log()
            }

            /// The id of its main process, unless it was killed or shut down.
            #[must_use]
            pub fn pid(&self) -> Option<i32> {
                self.instance.pid()
            }

            /// Whether its main process runs, be it frozen. One that has given up by itself does not.
            #[must_use]
            pub fn is_running(&self) -> bool {
                self.instance.is_running()
            }

            /// Freezes it with all its processes: connections stay open, and nothing answers.
            pub fn stop(&self) {
                self.instance.signal(rustix::process::Signal::STOP);
            }

            /// Lets it go on.
            pub fn cont(&self) {
                self.instance.signal(rustix::process::Signal::CONT);
            }

            /// Kills it with all its processes, as a crash would: connections break. [`restart`](Self::restart) brings it
            /// back.
            ///
            /// # Errors
            /// If it cannot be waited for.
            pub fn kill(&mut self) -> std::io::Result<()> {
                self.instance.end(rustix::process::Signal::KILL)
            }
        }
    };
    ($server:ty, shut down by $signal:expr) => {
        $crate::instance::handles!($server);

        impl $server {
            /// Shuts it down in an orderly way: transactions are rolled back, clients are told.
            /// [`restart`](Self::restart) brings it back.
            ///
            /// # Errors
            /// If it cannot be waited for.
            pub fn shut_down(&mut self) -> std::io::Result<()> {
                self.instance.end($signal)
            }

            /// Starts it again, on the same port and with the same files, after shutting it down if it still runs.
            ///
            /// # Errors
            /// If it does not start; the error has its log.
            pub fn restart(&mut self) -> std::io::Result<()> {
                self.shut_down()?;
                $crate::instance::Server::launch(self)
            }

            /// Copies its files, for which it is shut down, and started again if it ran.
            ///
            /// # Errors
            /// If they cannot be copied, or it does not start again.
            pub fn back_up(&mut self) -> std::io::Result<$crate::Backup> {
                let ran = self.is_running();
                self.shut_down()?;
                let backup = self.instance.back_up();
                if ran {
                    $crate::instance::Server::launch(self)?;
                }
                backup
            }

            /// Starts it with its files as they were when they were copied, after shutting it down if it still runs.
            ///
            /// # Errors
            /// If they cannot be copied, or it does not start.
            pub fn restore(&mut self, backup: &$crate::Backup) -> std::io::Result<()> {
                self.shut_down()?;
                self.instance.restore(backup)?;
                $crate::instance::Server::launch(self)
            }
        }
    };
}
pub(crate) use handles;
