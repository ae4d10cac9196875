//! Rows as leases.

use std::time::Duration;

use sqlx::{Row, mysql::MySqlRow};
use tenure::{ElectionName, Fence, Identity, Lease, Payload, Version, store::Outcome};

/// Reads the answer to a conditional write: the version that was found under the lock, if the record met the condition,
/// and then the record as it is now. It was written if its version is another one now: the lock kept everybody else
/// away.
pub(crate) fn outcome(rows: &[MySqlRow]) -> Result<Outcome, sqlx::Error> {
    Ok(match rows {
        [] => Outcome::Lost(None),
        [record] => Outcome::Lost(Some(lease(record)?)),
        [locked, record, ..] => {
            let before: i64 = locked.try_get("version")?;
            let lease = lease(record)?;
            if record.try_get::<i64, _>("version")? == before {
                Outcome::Lost(Some(lease))
            } else {
                Outcome::Won(lease)
            }
        }
    })
}

/// Reads the record that was looked for, if it is there.
pub(crate) fn found(rows: &[MySqlRow]) -> Result<Option<Lease>, sqlx::Error> {
    rows.first().map(lease).transpose()
}

pub(crate) fn listed(row: &MySqlRow) -> Result<(ElectionName, Lease), sqlx::Error> {
    Ok((ElectionName::new(text(row.try_get("name")?)?).map_err(invalid)?, lease(row)?))
}

fn lease(row: &MySqlRow) -> Result<Lease, sqlx::Error> {
    let holder: Option<&[u8]> = row.try_get("holder")?;
    let holder = holder.map(text).transpose()?.map(Identity::new).transpose();
    let fence = Fence::try_from(row.try_get::<i64, _>("fence")?);
    let version: u64 = row.try_get::<i64, _>("version")?.try_into().map_err(invalid)?;
    let duration = row.try_get::<i64, _>("duration_us")?.try_into().map_err(invalid)?;
    let duration = Duration::from_micros(duration);
    // Negative once it has expired.
    let ttl = u64::try_from(row.try_get::<i64, _>("ttl_us")?).unwrap_or_default();

    let mut lease = Lease::new(
        holder.map_err(invalid)?,
        fence.map_err(invalid)?,
        Version::from(version),
        duration,
    );
    lease.released = row.try_get("released")?;
    // The server's clock may have been set back since.
    lease.ttl = Some(Duration::from_micros(ttl).min(duration));
    lease.payload = Payload::from(row.try_get::<&[u8], _>("payload")?);
    Ok(lease)
}

fn text(bytes: &[u8]) -> Result<&str, sqlx::Error> {
    std::str::from_utf8(bytes).map_err(invalid)
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
