//! Names and contents of every kind on a real database: what goes in comes out, and nothing else happens there.

pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::time::Duration;

use tenure::{
    ElectionName, Identity, Lease, MAX_NAME_BYTES, Payload, Store,
    store::{AcquireRequest, Observed, Outcome, ReleaseRequest, RenewRequest, Session},
};
use tokio::runtime::Runtime;

use crate::input::Input;

/// Does not run out during a case.
const LONG: Duration = Duration::from_secs(600);
/// What is in a table that is nobody's business.
const CANARY: [&str; 3] = ["it's", "\"quoted\" `text` \\ 'é'", ""];

/// What a case says.
#[derive(Debug)]
struct Texts {
    schema: String,
    table: String,
    election: String,
    identity: String,
    payload: Payload,
}

impl Texts {
    fn read(bytes: &[u8]) -> Self {
        let mut input = Input::new(bytes);
        Self {
            schema: input.text(80),
            table: input.text(80),
            election: input.text(300),
            identity: input.text(300),
            payload: input.rest().into(),
        }
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A name between these marks, which are doubled where they stand in it.
fn quoted(name: &str, mark: char) -> String {
    let doubled = name.replace(mark, &format!("{mark}{mark}"));
    format!("{mark}{doubled}{mark}")
}

/// Leads the election of this name under this identity, with its table in place, and compares what is told about it.
/// A name that is refused says why, before anything is asked.
async fn comes_back(store: &impl Store, texts: &Texts) {
    let election = match ElectionName::new(&texts.election) {
        Ok(election) => election,
        Err(error) => return is_refused_in_words(&texts.election, &error.to_string()),
    };
    let identity = match Identity::new(&texts.identity) {
        Ok(identity) => identity,
        Err(error) => return is_refused_in_words(&texts.identity, &error.to_string()),
    };
    let mut session = store.session(&election);
    assert_eq!(session.inspect().await.unwrap(), None, "nobody has led {election:?}");
    let mut request = AcquireRequest::new(identity.clone(), None, LONG);
    request.payload = texts.payload.clone();
    let term = won(session.acquire(&request).await.unwrap());
    let is_told = |lease: &Lease| {
        assert_eq!(lease.holder.as_ref(), Some(&identity));
        assert_eq!(lease.payload, texts.payload);
        assert_eq!(lease.fence, term.fence);
        assert_eq!(lease.duration, LONG);
    };
    is_told(&term);

    let mut onlooker = store.session(&election);
    is_told(&onlooker.inspect().await.unwrap().unwrap());
    let leaders = store.leaders().await.unwrap();
    assert_eq!(leaders.len(), 1, "{leaders:?}");
    assert_eq!(leaders[0].0, election);
    is_told(&leaders[0].1);
    for other in others(&texts.election).filter_map(|name| ElectionName::new(name).ok()) {
        let found = store.session(&other).inspect().await.unwrap();
        assert_eq!(found, None, "{other:?} is not {election:?}");
    }

    let renewal = RenewRequest::new(identity.clone(), term.fence, LONG);
    is_told(&won(session.renew(&renewal).await.unwrap()));
    for other in others(&texts.identity).filter_map(|name| Identity::new(name).ok()) {
        let release = ReleaseRequest::new(other, term.fence);
        let refused = session.release(&release).await.unwrap();
        assert!(matches!(refused, Outcome::Lost(Some(_))), "{release:?}: {refused:?}");
    }
    let released =
        won(session.release(&ReleaseRequest::new(identity.clone(), term.fence)).await.unwrap());
    is_told(&released);

    let claim = AcquireRequest::new(identity, Some(Observed::from(&released)), LONG);
    assert!(won(session.acquire(&claim).await.unwrap()).payload.is_empty());
    let deposed = store.depose(&election).await.unwrap().unwrap();
    assert_eq!((deposed.holder, deposed.released), (None, false));
}

fn won(outcome: Outcome) -> Lease {
    match outcome {
        Outcome::Won(lease) => lease,
        Outcome::Lost(by) => panic!("lost to {by:?}"),
    }
}

/// Names that a database might take for this one.
fn others(name: &str) -> impl Iterator<Item = String> {
    let all = [
        format!("{name} "),
        name.trim_end().to_owned(),
        name.to_uppercase(),
        name.to_lowercase(),
        name.replace('\\', ""),
        name.replace('\'', "''"),
    ];
    let name = name.to_owned();
    all.into_iter().filter(move |other| *other != name)
}

fn is_refused_in_words(name: &str, said: &str) {
    let why = match name {
        "" => "is empty",
        name if name.len() > MAX_NAME_BYTES => "at most 255",
        name if name.contains('\0') => "NUL",
        name => panic!("{name:?} is refused: {said}"),
    };
    assert!(said.contains(why), "{name:?}: {said}");
}
