//! Names, identities, payloads and elections up to what tenure allows.

use std::collections::HashMap;

use futures::future::join_all;
use tenure::{
    ElectionName, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, Payload,
    store::{RenewRequest, Session},
};

use crate::{
    bench::{Bench, Candidate, LONG, at_once, election, identity, lost, won},
    subject::{Subject, Unsupported},
};

/// Names that databases like to take for one another, or for something else.
const NAMES: [&str; 29] = [
    "a",
    "A",
    "a ",
    " a",
    "a\t",
    "a\u{a0}",
    "ä",
    "a\u{308}",
    "ß",
    "ss",
    "ı",
    "I",
    "Å",
    "\u{212b}",
    "'",
    "''",
    "\"",
    "`",
    "\\",
    "\\\\",
    "%",
    "_",
    "; drop table leader_election; --",
    "$$ $1 ?1 :name @name {} /* */",
    "line\r\nbreak",
    "\u{1}\u{7f}",
    "👑 レプリカ",
    "\u{202e}right to left",
    "null",
];

pub(crate) async fn names_that_differ_are_different_elections<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut fences = HashMap::new();
    for name in names() {
        let name = election(&name);
        let mut candidate = bench.candidate_of("a candidate", &name).await;
        assert_eq!(candidate.inspect().await, None, "nobody has led {name:?}");
        fences.insert(name, won(candidate.claim(None, LONG).await));
    }
    for (name, term) in &fences {
        let shown = bench.record_of(name).await.lease.map(|lease| lease.version);
        assert_eq!(shown.as_ref(), Some(&term.version), "{name:?}");
    }
    Ok(())
}

pub(crate) async fn identities_that_differ_are_different_candidates<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    for name in names() {
        let mut leader = bench.candidate(&name).await;
        let term = leader.lead(LONG).await;
        assert_eq!(term.holder.as_ref(), Some(&leader.identity));
        for other in [format!("{name}."), format!("{name} "), other_case(&name)] {
            if other.len() > MAX_NAME_BYTES || other == name {
                continue;
            }
            leader.identity = identity(&other);
            let in_the_way = lost(leader.renew(term.fence, LONG).await);
            assert_eq!(in_the_way.map(|lease| lease.version), Some(term.version.clone()));
        }
    }
    Ok(())
}

pub(crate) async fn a_payload_may_hold_every_byte<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let every_byte = (0..=u8::MAX).collect::<Vec<u8>>();
    for payload in [every_byte, vec![0], b"\\x00'\"".to_vec(), vec![0xff, 0xfe], Vec::new()] {
        published(&mut leader, Payload::from(payload)).await;
    }
    Ok(())
}

pub(crate) async fn a_payload_may_have_64_kib<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let bytes = (0..MAX_PAYLOAD_BYTES).map(|at| (at * 31 + at / 256) as u8).collect::<Vec<u8>>();
    published(&mut leader, Payload::from(bytes)).await;
    published(&mut leader, Payload::from(vec![0; MAX_PAYLOAD_BYTES])).await;
    Ok(())
}

pub(crate) async fn a_renewal_without_a_payload_leaves_what_is_there<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let mut request = leader.request(None, LONG);
    request.payload = "an address".into();
    let term = won(leader.acquire(&request).await);
    let renewed = won(leader.renew(term.fence, LONG).await);
    assert_eq!(renewed.payload, request.payload);

    let mut successor = bench.candidate("the successor").await;
    let term = successor.lead(LONG).await;
    assert!(term.payload.is_empty(), "a new term does not inherit {:?}", term.payload);
    Ok(())
}

pub(crate) async fn many_elections_do_not_touch_each_other<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    const ELECTIONS: usize = 24;
    let names: Vec<_> =
        (0..ELECTIONS).map(|number| election(&format!("election {number}"))).collect();
    let leaders = join_all(names.iter().map(|name| bench.candidate_of("the leader", name))).await;
    let terms = at_once(leaders.into_iter().map(|mut leader| async move {
        let term = leader.lead(LONG).await;
        for _ in 0..3 {
            won(leader.renew(term.fence, LONG).await);
        }
        (leader, term)
    }))
    .await;

    let bystanders: Vec<_> = records(&bench, &names[1..]).await;
    let (mut leader, term) = terms.into_iter().next().expect("there are some");
    won(leader.renew(term.fence, LONG).await);
    won(leader.release(term.fence).await);
    leader.lead(LONG).await;
    assert_eq!(records(&bench, &names[1..]).await, bystanders);
    Ok(())
}

async fn records<S: Subject>(
    bench: &Bench<S>,
    names: &[ElectionName],
) -> Vec<crate::bench::Record> {
    join_all(names.iter().map(|name| bench.record_of(name))).await
}

/// Publishes with a claim and with a renewal, and reads it back each time.
async fn published<Se: Session>(leader: &mut Candidate<Se>, payload: Payload) {
    let seen = leader.inspect().await;
    let mut request = leader.request(seen.as_ref(), LONG);
    request.payload = payload.clone();
    let term = won(leader.acquire(&request).await);
    same(&term.payload, &payload);
    same(&leader.look().await.payload, &payload);

    let mut renewal = RenewRequest::new(leader.identity.clone(), term.fence, LONG);
    renewal.payload = Some("something else".into());
    same(&won(leader.renew_with(&renewal).await).payload, &"something else".into());
    renewal.payload = Some(payload.clone());
    same(&won(leader.renew_with(&renewal).await).payload, &payload);
    same(&leader.look().await.payload, &payload);
}

/// `assert_eq` that does not print 64 KiB.
fn same(shown: &Payload, published: &Payload) {
    assert!(
        shown == published,
        "{} bytes were published, and {} other ones are shown",
        published.as_bytes().len(),
        shown.as_bytes().len()
    );
}

fn names() -> impl Iterator<Item = String> {
    let longest = ["x".repeat(MAX_NAME_BYTES), "é".repeat(MAX_NAME_BYTES / 2), "👑".repeat(63)];
    let longest_but_for_the_end = format!("{}y", "x".repeat(MAX_NAME_BYTES - 1));
    NAMES.map(str::to_owned).into_iter().chain(longest).chain([longest_but_for_the_end])
}

fn other_case(name: &str) -> String {
    if name.to_uppercase() == name { name.to_lowercase() } else { name.to_uppercase() }
}
