//! Refusals, redirects and stamps for any headers, URI and payload.

use std::time::Duration;

use http::{
    HeaderMap, HeaderName, HeaderValue, Uri, Version,
    header::{CONNECTION, HOST, LOCATION, RETRY_AFTER},
};
use tenure::{ElectionName, Identity, Leader};
use tenure_http::{
    Cut, ELECTION, FENCE, FORWARDED, FenceRefusal, Form, REASON, Redirect, Refusal, Stamp,
};
use url::Url;

use crate::input::Input;

/// What a request may carry that somebody looks at.
const NAMES: [HeaderName; 4] = [HOST, FORWARDED, ELECTION, FENCE];
const VERSIONS: [Version; 4] =
    [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];

pub(crate) fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let payload = input.bytes(96);
    let uri = input.text(96);
    let mut headers = HeaderMap::new();
    for _ in 0..input.below(5) {
        let name = input.one_of(&NAMES);
        if let Ok(value) = HeaderValue::from_bytes(input.bytes(48)) {
            headers.append(name, value);
        }
    }
    let identity = Identity::new(input.text(255)).unwrap_or(Identity::new("web-7").unwrap());
    let leader = Leader::new(identity, input.fence(), payload.into());
    if let Ok(uri) = uri.parse() {
        redirects_only_to_the_leader(&leader, &uri, &headers);
    }
    let election = ElectionName::new(input.text(255)).unwrap_or(ElectionName::new("e").unwrap());
    let content_type = input.flag().then(|| input.bytes(48));
    let version = input.one_of(&VERSIONS);
    let form = Form::new(version, content_type);
    let lease_left = input.flag().then(|| input.duration());
    let refusal = Refusal::new(election.clone(), lease_left).with_leader(leader.clone());
    asks_to_come_back(&refusal, lease_left.unwrap_or_default(), form);
    let cut = Cut::new(election.clone(), leader.fence());
    for response in [refusal.to_response_in(form), cut.to_response_in(form)] {
        names_the_election(&response, &election, form);
        let closes = response.headers().contains_key(CONNECTION);
        assert_eq!(closes, version <= Version::HTTP_11, "only HTTP/1 can be closed");
    }
    stamps_come_back(&headers, &Stamp::new(election, leader.fence()), form);
}

fn redirects_only_to_the_leader(leader: &Leader, uri: &Uri, headers: &HeaderMap) {
    let Some(redirect) = Redirect::to(leader, uri, headers) else { return };
    assert!(!headers.contains_key(FORWARDED), "it was sent on once already");
    let payload = leader.payload().as_str().expect("a URL is text");
    let grpc = Form::new(Version::HTTP_2, Some(b"application/grpc"));
    assert!(redirect.to_response_in(grpc).is_none(), "its clients follow no redirects");
    let response = redirect.to_response_in(Form::default()).expect("others do");
    assert_eq!(response.status(), 307);
    let location = response.headers()[LOCATION].as_bytes();
    assert!(location.iter().all(|byte| *byte > b' ' && *byte != 0x7f), "{location:?}");
    let location = std::str::from_utf8(location).expect("a URI is text");

    // Whoever follows it talks to the leader, and asks for what was asked here.
    let (scheme, behind) = location.split_once("://").expect("it is absolute");
    let (_, meant) = payload.split_once("://").expect("the payload is absolute");
    let end = |text: &str| text.find(['/', '?', '#', '\\']).unwrap_or(text.len());
    let authority = &behind[..end(behind)];
    assert_eq!(authority, &meant[..end(meant)], "{payload:?} became {location:?}");
    assert!(payload.to_ascii_lowercase().starts_with(&format!("{scheme}://")), "{location}");
    assert!(matches!(scheme, "http" | "https") && !authority.contains('@'), "{location}");
    // A path that is left out of an absolute URI is the root.
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let asked = format!("{}{query}", uri.path());
    let appended = format!("{}{asked}", meant[end(meant)..].trim_end_matches('/'));
    assert_eq!(&behind[end(behind)..], appended, "{payload:?} became {location:?}");
    if let (Ok(by_browsers), Ok(meant)) = (Url::parse(location), Url::parse(payload)) {
        assert_eq!(by_browsers.origin(), meant.origin(), "{payload:?} became {location:?}");
        assert!(by_browsers.username().is_empty() && by_browsers.password().is_none());
    }

    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let asked = uri.authority().map(|authority| authority.as_str()).or(host);
    let default = if scheme == "https" { "443" } else { "80" };
    if let Some(asked) = asked {
        assert_ne!(place(authority, default), place(asked, default), "to itself: {location}");
    }
}

/// Name and port of a plain `host:port`.
fn place(authority: &str, default: &str) -> (String, String) {
    let behind_bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let (name, port) = match authority[behind_bracket..].find(':') {
        Some(at) => (&authority[..behind_bracket + at], &authority[behind_bracket + at + 1..]),
        None => (authority, ""),
    };
    let port = if port.is_empty() { default } else { port };
    (name.to_ascii_lowercase(), port.to_owned())
}

/// When the lease will have run out, in whole seconds, and never at once.
fn asks_to_come_back(refusal: &Refusal, left: Duration, form: Form) {
    let response = refusal.to_response_in(form);
    let after = response.headers()[RETRY_AFTER].to_str().expect("a number is text");
    assert!(after.bytes().all(|byte| byte.is_ascii_digit()), "{after}");
    let seconds = left.as_nanos().div_ceil(1_000_000_000).clamp(1, u64::MAX.into());
    assert_eq!(after.parse(), Ok(seconds), "{left:?}");
    assert_eq!(u128::from(refusal.retry_after().as_secs()), seconds);
}

/// In a body that is JSON, or in the head that is all there is for gRPC.
fn names_the_election<B: AsRef<[u8]>>(
    response: &http::Response<B>,
    election: &ElectionName,
    form: Form,
) {
    let headers = response.headers();
    assert!(headers.contains_key(REASON));
    assert!(headers.values().all(|value| value.to_str().is_ok()), "{headers:?}");
    if form.is_grpc() {
        assert_eq!(response.status(), 200);
        assert!(headers.contains_key("grpc-status") && response.body().as_ref().is_empty());
        let stamp = HeaderMap::from_iter([
            (ELECTION, headers[ELECTION].clone()),
            (FENCE, HeaderValue::from_static("1")),
        ]);
        let read = Stamp::read(&stamp).expect("what we write can be read").expect("it is there");
        assert_eq!(read.election(), election);
    } else {
        assert_eq!(response.status(), 503);
        let body: serde_json::Value = serde_json::from_slice(response.body().as_ref()).unwrap();
        assert_eq!(body["election"], election.as_str());
    }
}

/// What can be read is exactly one stamp, and comes back from its headers; what can not is refused in words.
fn stamps_come_back(headers: &HeaderMap, own: &Stamp, form: Form) {
    let read = Stamp::read(headers);
    let counts = [ELECTION, FENCE].map(|name| headers.get_all(name).iter().count());
    let refusal = match read {
        Ok(Some(read)) => {
            assert_eq!(counts, [1, 1]);
            let mut written = HeaderMap::new();
            read.write(&mut written);
            assert_eq!(Stamp::read(&written).unwrap().as_ref(), Some(&read));
            FenceRefusal::Outdated { highest: own.fence(), stamp: read }
        }
        Ok(None) => {
            assert_eq!(counts, [0, 0]);
            FenceRefusal::Unstamped
        }
        Err(error) => FenceRefusal::Malformed(error),
    };
    let response = refusal.to_response_in(form);
    assert_eq!(response.headers()[REASON], refusal.reason());
    assert!(!response.headers().contains_key(CONNECTION), "the replica is the right one");
    let mut replaced = headers.clone();
    own.write(&mut replaced);
    assert_eq!(Stamp::read(&replaced).unwrap().as_ref(), Some(own));
}
