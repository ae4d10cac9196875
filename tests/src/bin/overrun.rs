//! A leader that blocks its only thread under a guard, for ever. Its elector lives on that thread, so nobody renews.

use std::{future::pending, thread, time::Duration};

use tenure::{Elector, MemoryStore, Overrun};
use tokio::runtime::Builder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let elector = Elector::builder("overrun", MemoryStore::new())
            .lease_duration(Duration::from_secs(2))
            .on_overrun(Overrun::Abort)
            .build()?;
        let leadership = elector.leadership();
        let block = async {
            let guard = leadership.leading().await.ok().and_then(|term| term.guard());
            println!("{}", guard.is_some());
            loop {
                thread::sleep(Duration::from_secs(3_600));
            }
        };
        tokio::select! {
            stopped = elector.run(pending()) => Ok(stopped?),
            () = block => Ok(()),
        }
    })
}
