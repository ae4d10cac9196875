//! Where the leader would answer a request.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode, Uri,
    header::{HOST, LOCATION},
    uri::{Authority, PathAndQuery, Scheme},
};
use tenure::{Leader, Status};

use crate::{FORWARDED, Form, REASON, Refusal};

/// The leader's URL for a request that was sent to another replica, for leaders whose payload is their URL.
///
/// As an answer it is `307 Temporary Redirect`, which keeps method and body. It never leads in a circle:
/// - There is none for a request that carries [`FORWARDED`]: it was sent on once already.
/// - There is none to the very host and port that the request was sent to: whoever answers there would send it there
///   again. So it is if all replicas publish the address of the load balancer in front of them.
/// - [`from_standby`](Self::from_standby) gives none to the URL that the standby publishes itself. A process that was
///   restarted finds the lease of its last life under another identity, and at its own address.
/// - Replicas that publish their own addresses send a request from term to later term, and so at last to the one that
///   leads.
///
/// ```
/// use http::{HeaderMap, Uri};
/// use tenure::{Fence, Identity, Leader};
/// use tenure_http::Redirect;
///
/// let leader = Leader::new(Identity::new("web-7")?, Fence::MIN, "http://10.0.0.7:8080/app".into());
/// let asked = Uri::from_static("/jobs?kind=daily");
/// let redirect = Redirect::to(&leader, &asked, &HeaderMap::new()).expect("the payload is a URL");
/// assert_eq!(redirect.location(), "http://10.0.0.7:8080/app/jobs?kind=daily");
/// # Ok::<(), tenure::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
pub struct Redirect {
    location: Uri,
}

impl Redirect {
    /// From a standby, to the leader that its `status` knows of.
    ///
    /// `None` if nobody else is known to lead, if the leader publishes the same URL as the standby, and where
    /// [`to`](Self::to) gives none.
    #[must_use]
    pub fn from_standby(status: &Status, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let leader = status.other_leader()?;
        let urls = leader.payload().as_str().zip(status.payload().as_str());
        if urls.is_some_and(|(leaders, own)| is_same_url(leaders, own)) {
            return None;
        }
        Self::to(leader, uri, headers)
    }

    /// To `leader`, for a request of this URI with these headers.
    ///
    /// `None` if that would lead in a circle, if the leader's payload is no `http` or `https` URL to which a path can be
    /// appended (so without query, and without user name and password, which would be given away), and for requests
    /// without a path (`CONNECT`, `OPTIONS *`).
    #[must_use]
    pub fn to(leader: &Leader, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        if headers.contains_key(FORWARDED) {
            return None;
        }
        let base = base_url(leader.payload().as_str()?)?;
        let asked = uri.path_and_query().filter(|asked| asked.path().starts_with('/'))?;
        if asked_host(uri, headers).is_some_and(|asked| is_same_host(&base, &asked)) {
            return None;
        }
        let location = append(base, asked)?;
        Some(Self { location })
    }

    /// The request's path and query at the leader.
    #[must_use]
    pub fn location(&self) -> &Uri {
        &self.location
    }

    /// The whole answer. Its reason is that of a [`Refusal`]: nothing has looked at the request.
    ///
    /// `None` in the form of gRPC, whose clients follow no redirects.
    #[must_use]
    pub fn to_response_in(&self, form: Form) -> Option<Response<Bytes>> {
        if form.is_grpc() {
            return None;
        }
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        let location = HeaderValue::try_from(self.location.to_string());
        let headers = response.headers_mut();
        headers.insert(LOCATION, location.expect("a URI is made of what a header may hold"));
        headers.insert(REASON, HeaderValue::from_static(Refusal::REASON));
        Some(response)
    }
}

/// A URL that a path can be appended to.
fn base_url(payload: &str) -> Option<Uri> {
    // `Uri` would drop a fragment silently.
    if payload.contains('#') {
        return None;
    }
    let url: Uri = payload.parse().ok()?;
    let http = url.scheme() == Some(&Scheme::HTTP) || url.scheme() == Some(&Scheme::HTTPS);
    let host = url.authority()?;
    let plain = !host.host().is_empty() && !host.as_str().contains('@') && url.query().is_none();
    (http && plain).then_some(url)
}

/// Whom the client meant to ask: HTTP/2 and proxies have it in the URI, HTTP/1 in a header.
fn asked_host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let host = || headers.get(HOST)?.to_str().ok()?.parse().ok();
    uri.authority().cloned().or_else(host)
}

fn is_same_host(base: &Uri, asked: &Authority) -> bool {
    let default = if base.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let same_name = base.host().is_some_and(|host| host.eq_ignore_ascii_case(asked.host()));
    same_name && base.port_u16().unwrap_or(default) == asked.port_u16().unwrap_or(default)
}

/// Whether both lead to the same place, however they are spelt.
fn is_same_url(one: &str, other: &str) -> bool {
    let (Some(one), Some(other)) = (base_url(one), base_url(other)) else { return false };
    let path = |url: &Uri| url.path().trim_end_matches('/').to_owned();
    let host = other.authority();
    // Of two URLs the port that is not there may mean another one.
    let same_scheme = one.scheme() == other.scheme();
    same_scheme && host.is_some_and(|host| is_same_host(&one, host)) && path(&one) == path(&other)
}

fn append(base: Uri, asked: &PathAndQuery) -> Option<Uri> {
    let mut parts = base.into_parts();
    let prefix = parts.path_and_query.as_ref().map_or("", |base| base.path());
    let path = format!("{}{asked}", prefix.trim_end_matches('/'));
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use http::Version;
    use tenure::{Fence, Identity};

    use super::*;

    fn redirect(payload: &[u8], uri: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let leader = Leader::new(Identity::new("web-7").unwrap(), Fence::MIN, payload.into());
        let headers = headers
            .iter()
            .map(|&(name, value)| (name.parse().unwrap(), value.parse::<HeaderValue>().unwrap()));
        let redirect = Redirect::to(&leader, &uri.parse().unwrap(), &headers.collect())?;
        let grpc = Form::new(Version::HTTP_2, Some(b"application/grpc"));
        assert!(redirect.to_response_in(grpc).is_none());
        let response = redirect.to_response_in(Form::default()).unwrap();
        assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(response.headers()[REASON], "refused");
        Some(response.headers()[LOCATION].to_str().unwrap().to_owned())
    }

    #[test]
    fn path_and_query_are_appended_to_the_leaders_url() {
        let to = |payload: &str, uri| redirect(payload.as_bytes(), uri, &[]).unwrap();
        assert_eq!(to("http://10.0.0.7", "/"), "http://10.0.0.7/");
        assert_eq!(to("http://10.0.0.7/", "/jobs?a=%20b&a"), "http://10.0.0.7/jobs?a=%20b&a");
        assert_eq!(to("https://[::1]:8443/app/", "/jobs"), "https://[::1]:8443/app/jobs");
        assert_eq!(to("HTTP://web-7:80", "http://lb/jobs?"), "http://web-7:80/jobs?");
        assert_eq!(to("http://10.0.0.7", "http://lb?a=1"), "http://10.0.0.7/?a=1");
        // Whatever the path looks like, it stays one: no client is led to another host.
        assert_eq!(to("http://10.0.0.7", "//elsewhere/x"), "http://10.0.0.7//elsewhere/x");
    }

    #[test]
    fn a_payload_that_is_no_plain_url_leads_nowhere() {
        for payload in [
            "",
            "web-7",
            "web-7:80",
            "/jobs",
            "ftp://web-7",
            "http://",
            "http://web-7/?a=b",
            "http://web-7/#a",
            "http://user:secret@web-7/",
            "http://web 7/",
            "http://web-7\r\nx: y",
        ] {
            assert_eq!(redirect(payload.as_bytes(), "/jobs", &[]), None, "{payload:?}");
        }
        assert_eq!(redirect(&[0xff], "/jobs", &[]), None);
    }

    #[test]
    fn a_request_without_a_path_leads_nowhere() {
        assert_eq!(redirect(b"http://10.0.0.7", "*", &[]), None);
        assert_eq!(redirect(b"http://10.0.0.7", "elsewhere:443", &[]), None);
    }

    #[test]
    fn what_was_sent_on_once_is_not_sent_on_again() {
        assert_eq!(redirect(b"http://10.0.0.7", "/", &[("tenure-forwarded", "41")]), None);
    }

    #[test]
    fn a_url_is_the_same_however_it_is_spelt() {
        let own = "http://web-7/app";
        for same in ["http://web-7/app", "HTTP://Web-7:80/app/"] {
            assert!(is_same_url(same, own), "{same}");
        }
        for other in
            ["http://web-7/", "http://web-7:8080/app", "https://web-7/app", "http://web-8/app", ""]
        {
            assert!(!is_same_url(other, own), "{other}");
        }
        assert!(!is_same_url("", ""), "which is no URL");
    }

    #[test]
    fn nobody_is_sent_back_to_where_he_asked() {
        let from = |host| redirect(b"http://LB.example", "/", &[("host", host)]);
        for same in ["lb.example", "Lb.Example:80"] {
            assert_eq!(from(same), None, "{same}");
        }
        for other in ["lb.example:8080", "web-7", "10.0.0.7", ""] {
            assert!(from(other).is_some(), "{other}");
        }
        // HTTP/2 names the host in the URI.
        assert_eq!(redirect(b"https://lb.example", "https://lb.example:443/x", &[]), None);
    }
}
