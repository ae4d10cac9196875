//! The way to the server: where connections come from, and one request and its reply.

use std::{future, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use async_nats::{
    Client, ConnectOptions, Event, HeaderMap, Message, Request, ServerError, connection::State,
};
use bytes::Bytes;
use futures::future::{Either, select};
use tenure::store::{self, Slot, Taken};
use tokio::sync::watch;

use crate::{
    error::NatsError,
    setup::{Login, Server},
};

/// Where connections come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// One for each session, kept between calls.
    Own(Arc<Access>),
    /// The application's, of which each session has a handle.
    Client(Client),
}

/// How to connect.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) servers: Vec<Server>,
    pub(crate) options: ConnectOptions,
    /// Read anew for every connection: credentials are rotated.
    pub(crate) credentials: Option<PathBuf>,
}

impl Source {
    /// What an error calls the server. Of the URL only what is no secret.
    pub(crate) fn server(&self) -> String {
        match self {
            Self::Own(access) => {
                let addrs = access
                    .servers
                    .iter()
                    .map(|Server { addr, .. }| format!("{}:{}", addr.host(), addr.port()));
                format!("the server at {}", addrs.collect::<Vec<_>>().join(" or "))
            }
            Self::Client(_) => "the client's server".to_owned(),
        }
    }

    /// A connection that is to be there within this time.
    pub(crate) async fn connect(&self, limit: Duration) -> Result<Connection, NatsError> {
        match self {
            Self::Own(access) => access.connect(limit).await,
            Self::Client(client) => Ok(Connection::new(client.clone(), None)),
        }
    }
}

impl Access {
    /// Tries the servers in the order in which they were given. Each gets its share of the time, so that one that is
    /// frozen does not keep us from the next.
    async fn connect(&self, limit: Duration) -> Result<Connection, NatsError> {
        let share = limit / u32::try_from(self.servers.len()).unwrap_or(u32::MAX).max(1);
        let mut failure = None;
        for server in &self.servers {
            match self.connect_to(server, share).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or(NatsError::Disconnected))
    }

    async fn connect_to(&self, server: &Server, limit: Duration) -> Result<Connection, NatsError> {
        let (tell, trouble) = watch::channel(Trouble::default());
        let mut options = self.options.clone();
        options = match &server.login {
            None => options,
            Some(Login::Token(token)) => options.token(token.clone()),
            Some(Login::User { name, password }) => {
                options.user_and_password(name.clone(), password.clone())
            }
        };
        if let Some(path) = &self.credentials {
            options = options.credentials_file(path).await.map_err(NatsError::Credentials)?;
        }
        let client = options
            .connection_timeout(limit)
            // A connection that broke is replaced by us. The driver's own reconnecting would send later what was given up
            // long ago; it can not be turned off entirely, but is over after one attempt.
            .max_reconnects(1)
            .ignore_discovered_servers()
            // Only a watch subscribes, and what it misses it can do without.
            .subscription_capacity(64)
            .event_callback(move |event| {
                tell.send_modify(|trouble| trouble.note(event));
                future::ready(())
            })
            .connect(server.addr.clone())
            .await?;
        Ok(Connection::new(client, Some(trouble)))
    }
}

/// What a connection is told beside replies.
#[derive(Debug, Default)]
struct Trouble {
    broken: bool,
    /// What the server does not allow. It answers a request that is not allowed by this alone.
    refused: Option<String>,
}

impl Trouble {
    fn note(&mut self, event: Event) {
        match event {
            Event::Disconnected | Event::Closed => self.broken = true,
            Event::ServerError(ServerError::Other(text))
                if text.to_ascii_lowercase().contains("permissions violation") =>
            {
                self.refused = Some(text);
            }
            _ => {}
        }
    }

    fn as_error(&self) -> Option<NatsError> {
        if self.broken {
            return Some(NatsError::Disconnected);
        }
        self.refused.clone().map(NatsError::Refused)
    }
}

/// A connection to a server.
pub(crate) struct Connection {
    client: Client,
    /// `None` for the application's client, which tells its events to the application.
    trouble: Option<watch::Receiver<Trouble>>,
    /// Whether the bucket was looked at through it.
    pub(crate) checked: bool,
}

impl Connection {
    fn new(client: Client, trouble: Option<watch::Receiver<Trouble>>) -> Self {
        Self { client, trouble, checked: false }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    fn is_up(&self) -> bool {
        let broken = self.trouble.as_ref().is_some_and(|trouble| trouble.borrow().broken);
        !broken && self.client.connection_state() == State::Connected
    }

    /// Whether it is known to be unfit. An own one is replaced; the application's client may come back by itself.
    fn is_spent(&self) -> bool {
        self.trouble.is_some() && !self.is_up()
    }

    /// Waits until it is broken; for ever, if it is the application's client, which does not tell.
    pub(crate) async fn broken(&mut self) {
        trouble(&mut self.trouble).await;
    }

    /// Tells a server that has no JetStream from one that does not answer just now.
    fn judged(&self, error: NatsError) -> NatsError {
        let info = self.client.server_info();
        if error.is_no_responders() && !info.jetstream { NatsError::NoJetStream } else { error }
    }

    /// Sends a request and waits for its reply, for however long its caller does.
    ///
    /// Nothing is sent while there is no connection: the client would keep it and send it later. Should the connection
    /// break at this very moment, that may still happen; what comes late is harmless, since every write is a
    /// compare-and-set.
    pub(crate) async fn request(
        &mut self,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Result<Message, NatsError> {
        if !self.is_up() {
            return Err(NatsError::Disconnected);
        }
        let request = Request { headers, ..Request::new().payload(payload).timeout(None) };
        let reply = pin!(self.client.send_request(subject, request));
        let reply = match select(reply, pin!(trouble(&mut self.trouble))).await {
            Either::Left((reply, _)) => reply.map_err(NatsError::from),
            Either::Right((error, _)) => Err(error),
        };
        reply.map_err(|error| self.judged(error))
    }
}

/// Waits until something is wrong with the connection.
async fn trouble(told: &mut Option<watch::Receiver<Trouble>>) -> NatsError {
    let Some(told) = told else { return future::pending().await };
    let trouble = told.wait_for(|trouble| trouble.as_error().is_some()).await.ok();
    // Without any the client is gone.
    trouble.and_then(|trouble| trouble.as_error()).unwrap_or(NatsError::Disconnected)
}

/// Gives up on `work` after this time.
pub(crate) fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, NatsError>>,
) -> impl Future<Output = Result<T, NatsError>> {
    let answer = store::within(limit, work);
    async move { answer.await.unwrap_or(Err(NatsError::NoReply(limit))) }
}

/// One session's way to the server.
pub(crate) struct Link {
    source: Source,
    slot: Slot<Connection>,
    limit: Duration,
}

impl Link {
    pub(crate) fn new(source: Source, limit: Duration) -> Self {
        Self { source, slot: Slot::new(), limit }
    }

    /// Gives up within this time.
    pub(crate) fn limit_to(&mut self, limit: Duration) {
        self.limit = limit;
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// How long a call may take: somewhat less than its caller waits, so that its error is still heard.
    pub(crate) fn patience(&self) -> Duration {
        self.limit * 3 / 4
    }

    /// Takes the connection out, or makes one; and says whether it has been idle.
    pub(crate) async fn take(&mut self) -> Result<(Taken<'_, Connection>, bool), NatsError> {
        self.slot.retain(|connection| !connection.is_spent());
        let was_idle = !self.slot.is_empty();
        let connect = self.source.connect(self.patience());
        Ok((self.slot.take_or(connect).await?, was_idle))
    }
}
