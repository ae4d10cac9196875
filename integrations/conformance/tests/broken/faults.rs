//! What stores do wrong, one thing each.

use std::time::Duration;

use tenure::{Fence, Lease, Payload, Version};

use Fault::*;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    AcquireTakesWhatIsThere,
    AcquireIgnoresExpiry,
    ExpiryIsGuessed,
    AcquireContinuesOwnLease,
    AcquireReusesTheFence,
    AcquireIgnoresTheFloor,
    OwnEarlierClaimIsSuccess,
    LosersAreNotToldByWhom,
    LosersProlongTheLease,
    RenewGoesByTheNameAlone,
    RenewRevivesTheExpired,
    RenewAnswersFromMemory,
    RenewKeepsTheLongerDuration,
    RenewClearsThePayload,
    ReleaseGoesByTheNameAlone,
    ReleaseDeletes,
    VersionsAreTheFence,
    NamesIgnoreCase,
    IdentitiesIgnoreCase,
    PayloadsAreText,
    LeasesLastASecondLonger,
    TimeStandsStill,
    ClockIsNotShown,
    InspectProlongsTheLease,
    PlaceReplacesTheRecord,
    DeposeReleases,
    SchemaIsCreatedAnew,
    DroppedCallsPoison,
    DroppedCallsGoOn,
    RepliesOutliveTheirCalls,
    FencesAreSwapped,
    AddedColumnsBreakOldSessions,
    WritesClearAddedColumns,
    HintsAreNotDeclared,
    ReleasesDoNotHint,
    RenewalsHint,
    AllElectionsHint,
    HintsComeOnlyOnce,
    OnlyTheFirstIsHinted,
    ListenersAreServedWorse,
    HoldIsNotDeclared,
    HoldIsNotOffered,
    HoldKeepsNobodyAway,
    HoldKeepsRenewalsAway,
    HoldIsNotNamed,
    HoldMakesOthersLose,
    HoldsExcludeEachOther,
    HoldOutlivesItsTransaction,
    HoldEndsWithTheLease,
    HoldAsksNobody,
    HoldAsksTheSnapshot,
    HoldRefusesToDrain,
    HoldGoesOnAfterTheEnd,
    DroppedTransactionsCommit,
    DeposeBreaksHolds,
    /// What the others are made of.
    Nothing,
}

/// A record as such a store shows it.
pub(crate) fn shown(fault: Fault, mut lease: Lease) -> Lease {
    match fault {
        VersionsAreTheFence => lease.version = Version::from(u64::from(lease.fence)),
        LeasesLastASecondLonger => lease.duration -= Duration::from_secs(1),
        TimeStandsStill => lease.ttl = Some(lease.duration),
        ClockIsNotShown | ExpiryIsGuessed => lease.ttl = None,
        FencesAreSwapped => lease.fence = swapped(lease.fence),
        _ => {}
    }
    lease
}

/// 2 for 3, 3 for 2, 4 for 5 and so on: no fence comes twice, but they do not rise.
pub(crate) fn swapped(fence: Fence) -> Fence {
    match i64::from(fence) {
        1 | i64::MAX => fence,
        number => Fence::try_from(number ^ 1).expect("positive"),
    }
}

pub(crate) fn as_text(payload: &Payload) -> Payload {
    String::from_utf8_lossy(payload.as_bytes()).into_owned().into()
}
