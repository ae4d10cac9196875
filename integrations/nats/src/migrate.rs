//! Moving elections to another bucket.

use std::time::Duration;

use serde_json::Map;
use tenure::{ElectionName, Payload, StoreError};

use crate::{
    api::Last,
    bucket::{Bucket, BucketError, Phase, phase},
    error::{NatsError, store_error},
    key::key_of,
    link::{Connection, Source, within},
    store::NatsStore,
    value::Record,
};

/// How long one step may take; there is a step for each election, and nobody else bounds it.
const STEP_LIMIT: Duration = Duration::from_secs(10);

/// Moves all elections of the bucket of `from` to that of `to`: to another name, another kind of storage, other settings
/// that cannot be changed in place, or another server. Answers how many there were.
///
/// It freezes the old bucket, copies what stands there, and lets the new one be used; in this order, so that nobody leads
/// in both. For the candidates it is a fail-over with a change of configuration in the middle:
///
/// 1. Run it while the candidates of the old bucket are at work, or stopped. The leader's next renewal is refused and its
///    term ends at its deadline, at the latest. Nobody leads from then on.
/// 2. Start the candidates with the new bucket: during the migration they are told, with a fatal error, to wait for its end;
///    then whoever watched a lease for its whole duration takes over, which makes certain that the old term is over. Fences
///    rise.
/// 3. Delete the old bucket when no candidate uses it any more. Before, it tells those that still do, with a fatal error,
///    where their elections are; afterwards, one that calls [`ensure_schema`](NatsStore::ensure_schema) would begin it
///    anew, and lead beside the others.
///
/// **The new bucket must not exist**, or be one that this migration has begun: who might lead there already could not be
/// told. A bucket can move to one other only. **There is no way back**: the old bucket is sealed, which NATS cannot undo; to
/// return, move again to a bucket of a further name. Before it is sealed every record is read, and the new bucket
/// prepared, so that what is wrong with either of them shows while nothing has happened yet.
///
/// It may be repeated after any failure, and goes on where it stood. Two that run at the same time do the same, and harm
/// nothing. The user needs the permission to create and update streams.
///
/// ```no_run
/// # async fn main_() -> Result<(), Box<dyn std::error::Error>> {
/// use tenure_nats::{NatsStore, Storage};
///
/// let url = "nats://nats.internal";
/// let from = NatsStore::new(url)?.with_storage(Storage::Memory);
/// let to = NatsStore::new(url)?.with_bucket("leader_election_2")?.with_replicas(3)?;
/// let moved = tenure_nats::migrate(&from, &to).await?;
/// println!("{moved} elections were moved");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StoreError`], fatal where someone must do something: its source says whether that is about a [`BucketError`].
///
/// # Cancel safety
/// Dropped, it may be repeated like after a failure.
pub async fn migrate(from: &NatsStore, to: &NatsStore) -> Result<usize, StoreError> {
    let attempt = format!("move the elections of {:?} to {:?}", from.bucket.name, to.bucket.name);
    let moved = async {
        let mut from = End::connect(&from.source, &from.bucket).await?;
        let mut to = End::connect(&to.source, &to.bucket).await?;
        run(&mut from, &mut to).await
    };
    moved.await.map_err(|error| store_error(&attempt, &from.source, error))
}

/// Every step may be repeated, also by somebody else at the same time.
async fn run(from: &mut End<'_>, to: &mut End<'_>) -> Result<usize, NatsError> {
    let target = to.bucket.name.as_str();
    from.is_sealed_for(target).await?;
    from.records().await?;
    let info = within(STEP_LIMIT, to.bucket.ensure_filling(&mut to.connection)).await?;
    let sealed = from.is_sealed_for(target).await?;
    if phase(&info) == Phase::Ready && !(sealed && to.has_all_of(from).await?) {
        return Err(BucketError::Occupied.into());
    }
    if !sealed {
        from.note_move_to(target).await?;
        let description = format!("tenure: its elections moved to the bucket {target}");
        within(STEP_LIMIT, from.bucket.seal(&mut from.connection, &description)).await?;
    }
    // From here on nothing there changes any more.
    let records = from.records().await?;
    let moved = records.len();
    for (election, record) in records {
        to.settle(&election, record).await?;
    }
    within(STEP_LIMIT, to.bucket.open(&mut to.connection)).await?;
    Ok(moved)
}

/// One end of the move.
struct End<'a> {
    bucket: &'a Bucket,
    connection: Connection,
}

impl<'a> End<'a> {
    async fn connect(source: &Source, bucket: &'a Bucket) -> Result<Self, NatsError> {
        let connection = within(STEP_LIMIT, source.connect(STEP_LIMIT)).await?;
        Ok(Self { bucket, connection })
    }

    /// Whether it is sealed already, by a move to this target.
    async fn is_sealed_for(&mut self, target: &str) -> Result<bool, NatsError> {
        if self.bucket.name == target {
            // On another server it would do, but there it would be mistaken for this one.
            return Err(BucketError::SameName.into());
        }
        let stream = self.bucket.stream();
        let info = within(STEP_LIMIT, self.connection.stream_info(&stream, None)).await?;
        let info = info.ok_or(BucketError::Missing)?;
        match phase(&info) {
            Phase::Unprepared => Err(BucketError::Unprepared.into()),
            Phase::Filling => Err(BucketError::Filling.into()),
            Phase::Ready => Ok(false),
            Phase::Sealed => match self.noted_move().await? {
                None => Err(BucketError::sealed(&info).into()),
                Some(noted) if noted == target => Ok(true),
                Some(noted) => Err(BucketError::MovedElsewhere { to: noted }.into()),
            },
        }
    }

    /// Decides for this target, unless somebody has decided for another one.
    async fn note_move_to(&mut self, target: &str) -> Result<(), NatsError> {
        let (stream, subject) = (self.bucket.stream(), self.bucket.move_subject());
        let noted = self.connection.store(&stream, &subject, 0, target.into());
        match within(STEP_LIMIT, noted).await {
            Ok(Some(_)) => return Ok(()),
            Err(error) if !error.is_sealed() => return Err(error),
            // Somebody has decided, and perhaps acted on it.
            Ok(None) | Err(_) => {}
        }
        match self.noted_move().await?.ok_or(NatsError::Contended)? {
            noted if noted == target => Ok(()),
            noted => Err(BucketError::MovedElsewhere { to: noted }.into()),
        }
    }

    async fn noted_move(&mut self) -> Result<Option<String>, NatsError> {
        let (stream, subject) = (self.bucket.stream(), self.bucket.move_subject());
        Ok(match within(STEP_LIMIT, self.connection.last(&stream, &subject)).await? {
            Last::Vacant { .. } => None,
            Last::Stored { data, .. } => Some(String::from_utf8_lossy(&data).into_owned()),
        })
    }

    /// All elections that have a record. A key that somebody has deleted has none.
    async fn records(&mut self) -> Result<Vec<(ElectionName, Record)>, NatsError> {
        let elections = self.bucket.elections(&mut self.connection);
        let mut records = Vec::new();
        for election in within(STEP_LIMIT, elections).await? {
            if let Some(record) = self.read(&election).await? {
                records.push((election, record));
            }
        }
        Ok(records)
    }

    async fn read(&mut self, election: &ElectionName) -> Result<Option<Record>, NatsError> {
        let (stream, subject) = (self.bucket.stream(), self.bucket.subject(election));
        match within(STEP_LIMIT, self.connection.last(&stream, &subject)).await? {
            Last::Vacant { .. } => Ok(None),
            Last::Stored { revision, stored_ms, data } => {
                let record = Record::decode(&data, revision, stored_ms);
                let foreign = |source| NatsError::Value { key: key_of(election), source };
                record.map(Some).map_err(foreign)
            }
        }
    }

    /// Puts the record here as nobody's: whoever wants it must have seen it for as long as the old term may go on.
    async fn settle(&mut self, election: &ElectionName, from: Record) -> Result<(), NatsError> {
        let (stream, subject) = (self.bucket.stream(), self.bucket.subject(election));
        let nobodys = Record {
            revision: 0,
            holder: None,
            payload: Payload::default(),
            nonce: String::new(),
            added: Map::new(),
            ..from
        };
        // If there is one, an earlier run has put it there: nobody else writes here before it is opened.
        let stored = self.connection.store(&stream, &subject, 0, nobodys.settled());
        within(STEP_LIMIT, stored).await.map(drop)
    }

    /// Whether all elections of the other end are here: the bucket is in use because an earlier run has come to its end.
    async fn has_all_of(&mut self, from: &mut End<'_>) -> Result<bool, NatsError> {
        let here = self.records().await?;
        let is_here = |(election, _)| here.iter().any(|(here, _)| *here == election);
        Ok(from.records().await?.into_iter().all(is_here))
    }
}
