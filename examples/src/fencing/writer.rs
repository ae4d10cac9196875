//! One candidate, which writes to the ledger while it leads.
//!
//! It is told when on its standard input, so that it can be frozen at the worst of moments: after it has made sure that it
//! leads, and before it writes.

use std::{
    io::{self, BufRead},
    net::SocketAddr,
};

use bytes::Bytes;
use clap::Args;
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tenure::Term;
use tenure_axum::FenceHeader;
use tenure_http::REASON;
use tokio::runtime::Handle;
use tower::{Layer, ServiceExt};

use super::{ELECTION, FencingError};
use crate::{args::ElectionArgs, failover::die_with_parent};

/// One candidate.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct WriterArgs {
    /// Where the ledger is.
    #[arg(long)]
    pub ledger: SocketAddr,
    /// Where the election takes place.
    #[command(flatten)]
    pub election: ElectionArgs,
}

/// Takes part until the standard input ends, then hands over.
///
/// # Errors
/// [`FencingError`] if it cannot start.
pub async fn run(args: &WriterArgs) -> Result<(), FencingError> {
    die_with_parent()?;
    let config = args.election.to_config(ELECTION, "memory:")?;
    let store = config.store()?;
    store.ensure_schema().await?;
    let candidacy = config.elector(store)?.spawn();
    let leadership = candidacy.leadership();

    let mut terms = leadership.terms();
    while let Some(term) = terms.next().await {
        println!("leads {}", term.fence());
        let ledger = args.ledger;
        // Blocking code can't be stopped, so it holds a guard: this candidate will not lead again before it is done.
        let written = term.spawn_blocking(move |guard| write_as_told(guard.term(), ledger)).await;
        if written.is_ok_and(|done| matches!(done, Ok(Ok(Told::ToStop)))) {
            break;
        }
    }
    Ok(candidacy.shutdown().await?)
}

enum Told {
    ToStop,
    Nothing,
}

/// Writes an entry for each pair of lines `check` and `write`, for as long as the term is live.
fn write_as_told(term: &Term, ledger: SocketAddr) -> io::Result<Told> {
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next().transpose()? {
        if line != "check" {
            continue;
        }
        if !term.is_live() {
            return Ok(Told::Nothing);
        }
        println!("checked {}", term.fence());
        // Between the check and the write anything can happen, for any length of time.
        if lines.next().transpose()?.is_none() {
            break;
        }
        let answer = Handle::current().block_on(write(term, ledger)).map_err(io::Error::other)?;
        println!("{answer}");
    }
    Ok(Told::ToStop)
}

/// The fence goes along with the write: that of the term in which it was decided, not of whatever term it is by now.
async fn write(term: &Term, ledger: SocketAddr) -> Result<String, FencingError> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let client = FenceHeader::of(term).layer(client);
    let entry = Bytes::from(format!("written by {}", term.identity()));
    let request = Request::post(format!("http://{ledger}/entries")).body(Full::new(entry))?;
    let answer = client.oneshot(request).await?;
    Ok(match answer.status() {
        StatusCode::CREATED => format!("accepted {}", term.fence()),
        status => {
            let reason = answer.headers().get(REASON).and_then(|reason| reason.to_str().ok());
            format!("refused {}: {status}, {}", term.fence(), reason.unwrap_or("for no reason"))
        }
    })
}
