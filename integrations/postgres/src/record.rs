//! Rows as leases.

use std::time::Duration;

use sqlx::{Row, postgres::PgRow};
use tenure::{ElectionName, Fence, Identity, Lease, Payload, Version, store::Outcome};

use crate::literal::from_hex;

/// Reads the answer to a conditional write.
pub(crate) fn outcome(rows: &[PgRow]) -> Result<Outcome, sqlx::Error> {
    let Some(row) = rows.first() else {
        return Ok(Outcome::Lost(None));
    };
    let lease = lease(row)?;
    Ok(if row.try_get("won")? { Outcome::Won(lease) } else { Outcome::Lost(Some(lease)) })
}

/// Reads the record that was looked for, if it is there.
pub(crate) fn found(rows: &[PgRow]) -> Result<Option<Lease>, sqlx::Error> {
    rows.first().map(lease).transpose()
}

pub(crate) fn listed(row: &PgRow) -> Result<(ElectionName, Lease), sqlx::Error> {
    Ok((ElectionName::new(row.try_get::<&str, _>("name")?).map_err(invalid)?, lease(row)?))
}

fn lease(row: &PgRow) -> Result<Lease, sqlx::Error> {
    let holder = row.try_get::<Option<&str>, _>("holder")?.map(Identity::new).transpose();
    let fence = Fence::try_from(row.try_get::<i64, _>("fence")?);
    let version: u64 = row.try_get::<i64, _>("version")?.try_into().map_err(invalid)?;
    let duration = row.try_get::<i64, _>("duration_us")?.try_into().map_err(invalid)?;
    let duration = Duration::from_micros(duration);
    let payload = from_hex(row.try_get("payload")?).ok_or_else(|| invalid("not hexadecimal"))?;
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
    lease.payload = Payload::from(payload);
    Ok(lease)
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
