//! The record's own log, followed line by line, without the store that wrote it.

use tenure::{
    Fence, Identity, Version,
    store::{Observed, When},
};

use super::{
    Property::*,
    books::{Finding, require},
};
use crate::record::{Commit, Row, StoreKind, Write};

#[derive(Clone, Debug)]
pub(super) struct Replay {
    kind: StoreKind,
    row: Option<Row>,
    version: Option<Version>,
    /// Who was given which fence, in this order.
    acquired: Vec<(Fence, Identity)>,
}

impl Replay {
    pub(super) fn new(kind: StoreKind) -> Self {
        Self { kind, row: None, version: None, acquired: Vec::new() }
    }

    /// Whether this candidate was given this fence.
    pub(super) fn gave(&self, fence: Fence, to: &Identity) -> bool {
        let found = self.acquired.iter().rev().find(|(given, _)| *given == fence);
        found.is_some_and(|(_, holder)| holder == to)
    }

    pub(super) fn follow(&mut self, commit: &Commit) -> Result<(), Finding> {
        let Commit { store_time, write, row: after, .. } = commit;
        let before = self.row.take();
        self.row.clone_from(after);
        let allowed = match (write, &before, after) {
            (Write::Placed, None, Some(after)) => {
                after.lease.holder.is_none() && !after.lease.released
            }
            (Write::Acquired { observed, when }, before, Some(after)) => {
                let is_expired = before.as_ref().is_none_or(|row| row.expires_at <= *store_time);
                let by_clock = self.kind != StoreKind::Revisions || before.is_none();
                let found = before.as_ref().map(|row| Observed::from(&row.lease));
                let permitted = *when == When::Unchanged || (is_expired && by_clock);
                found == *observed && permitted && !after.lease.released
            }
            (Write::Renewed | Write::Released, Some(before), Some(after)) => {
                let has_expired = before.expires_at <= *store_time;
                let may_be_late = self.kind == StoreKind::Revisions || *write == Write::Released;
                let same = (&before.lease.holder, before.lease.fence)
                    == (&after.lease.holder, after.lease.fence);
                same && before.lease.holder.is_some() && (may_be_late || !has_expired)
            }
            (Write::Deposed, Some(before), Some(after)) => {
                before.lease.fence == after.lease.fence && after.lease.holder.is_none()
            }
            (Write::Deleted, Some(_), None) | (Write::Restored, _, _) => true,
            _ => false,
        };
        require(allowed, LogIsSound, || format!("{write:?} of {before:?} made {after:?}"))?;
        self.releases_hold(write, before.as_ref())?;
        self.versions_rise(write)?;
        self.fences_rise(write)
    }

    fn releases_hold(&self, write: &Write, before: Option<&Row>) -> Result<(), Finding> {
        let is_claimed = matches!(write, Write::Acquired { .. } | Write::Restored);
        let was_released = before.filter(|row| row.lease.released && !is_claimed);
        let after = self.row.as_ref();
        let undone = was_released.is_some() && after.is_some_and(|row| !row.lease.released);
        let renewed = was_released.is_some() && matches!(write, Write::Renewed | Write::Released);
        require(!undone && !renewed, ReleasedStaysReleased, || {
            format!("{write:?} of a lease that was given back: {before:?}")
        })
    }

    /// Also over a deleted record; after a backup was restored from there on.
    fn versions_rise(&mut self, write: &Write) -> Result<(), Finding> {
        let Some(row) = &self.row else { return Ok(()) };
        if *write == Write::Restored {
            return Ok(());
        }
        let version = row.lease.version.clone();
        let last = self.version.replace(version.clone());
        let rises = last.as_ref().is_none_or(|last| last.as_bytes() < version.as_bytes());
        require(rises, LogIsSound, || format!("version {version:?} comes after {last:?}"))
    }

    fn fences_rise(&mut self, write: &Write) -> Result<(), Finding> {
        let (Write::Acquired { .. }, Some(row)) = (write, &self.row) else { return Ok(()) };
        let fence = row.lease.fence;
        let last = self.acquired.last().map(|(fence, _)| *fence);
        let holder = row.lease.holder.clone();
        require(holder.is_some(), LogIsSound, || format!("nobody was given {fence}"))?;
        self.acquired.extend(holder.map(|holder| (fence, holder)));
        require(Some(fence) > last, FencesRise, || format!("{fence} was given out after {last:?}"))
    }
}
