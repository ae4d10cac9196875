//! Rows as leases.

use std::time::Duration;

use sqlx::{Row, sqlite::SqliteRow};
use tenure::{ElectionName, Fence, Identity, Lease, Payload, Version};

use crate::clock::Reading;

/// The record that was looked for or written, if there is one, with what is left of it at this reading.
pub(crate) fn found(rows: &[SqliteRow], now: Reading) -> Result<Option<Lease>, sqlx::Error> {
    rows.first().map(|row| lease(row, now)).transpose()
}

pub(crate) fn listed(row: &SqliteRow, now: Reading) -> Result<(ElectionName, Lease), sqlx::Error> {
    let name = ElectionName::new(row.try_get::<&str, _>("name")?).map_err(invalid)?;
    Ok((name, lease(row, now)?))
}

fn lease(row: &SqliteRow, now: Reading) -> Result<Lease, sqlx::Error> {
    let holder = row.try_get::<Option<&str>, _>("holder")?.map(Identity::new).transpose();
    let fence = Fence::try_from(row.try_get::<i64, _>("fence")?);
    let version: u64 = row.try_get::<i64, _>("version")?.try_into().map_err(invalid)?;
    let duration = row.try_get::<i64, _>("duration_us")?.try_into().map_err(invalid)?;
    let duration = Duration::from_micros(duration);

    let mut lease = Lease::new(
        holder.map_err(invalid)?,
        fence.map_err(invalid)?,
        Version::from(version),
        duration,
    );
    lease.released = row.try_get("released")?;
    lease.payload = Payload::from(row.try_get::<&[u8], _>("payload")?);
    // A reading of another boot says nothing about this one's: then there is no clock to judge by.
    if row.try_get::<&str, _>("boot_id")? == now.boot {
        let left = row.try_get::<i64, _>("expires_at")?.saturating_sub(now.micros);
        lease.ttl = Some(Duration::from_micros(u64::try_from(left).unwrap_or(0)).min(duration));
    }
    Ok(lease)
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
