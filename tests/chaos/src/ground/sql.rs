//! What those who look after a database do there.

use std::fs;

use super::{Ground, Server, SqlSession, TABLE, USER, nats};

/// More connections than candidates ever have, all of them together.
const ENOUGH: &str = "100";

impl Ground {
    pub(super) fn create_user(&self) {
        match &self.server {
            Server::Postgres(_) => self.execute(&format!("CREATE ROLE {USER} LOGIN")),
            // It counts only those whom it limits.
            Server::Mariadb(_) => {
                self.execute(&format!("CREATE USER {USER}@'%' WITH MAX_USER_CONNECTIONS {ENOUGH}"))
            }
            Server::Nats(_) | Server::Sqlite(_) => return,
        }
        self.grant();
    }

    /// Gives candidates the rights that they need.
    pub(crate) fn grant(&self) {
        match &self.server {
            Server::Postgres(_) => {
                self.execute(&format!("GRANT SELECT, INSERT, UPDATE ON {TABLE} TO {USER}"));
            }
            Server::Mariadb(_) => {
                for table in [TABLE.to_owned(), format!("{TABLE}_hold")] {
                    self.execute(&format!(
                        "GRANT SELECT, INSERT, UPDATE ON app.{table} TO {USER}@'%'"
                    ));
                }
            }
            Server::Nats(_) | Server::Sqlite(_) => {}
        }
    }

    /// Takes them away.
    pub(crate) fn revoke(&self) {
        match &self.server {
            Server::Postgres(_) => {
                self.execute(&format!("REVOKE ALL ON {TABLE} FROM {USER}"));
            }
            _ => self.execute(&format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM {USER}@'%'")),
        }
    }

    /// A session of somebody with all rights.
    pub(crate) fn session(&self) -> SqlSession {
        match &self.server {
            Server::Postgres(server) => SqlSession::postgres(&server.url()),
            Server::Mariadb(server) => SqlSession::mysql(&server.url()),
            Server::Sqlite(_) => SqlSession::sqlite(&self.file()),
            Server::Nats(_) => panic!("NATS speaks no SQL"),
        }
    }

    /// Has somebody with all rights say this.
    pub(crate) fn execute(&self, sql: &str) {
        self.session().execute(sql);
    }

    /// Takes away what `ensure_schema` creates, with all records.
    pub(crate) fn drop_schema(&self) {
        if let Server::Nats(server) = &self.server {
            return nats::delete_bucket(&server.url());
        }
        let mut session = self.session();
        session.execute(&format!("DROP TABLE {TABLE}"));
        if let Server::Mariadb(_) = self.server {
            session.execute(&format!("DROP TABLE {TABLE}_hold"));
        }
    }

    /// Takes a lock that keeps everybody else from the table, until the session is dropped.
    pub(crate) fn lock_table(&self) -> SqlSession {
        let mut session = self.session();
        let lock: &[&str] = match &self.server {
            Server::Postgres(_) => {
                &["BEGIN", &format!("LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")]
            }
            Server::Mariadb(_) => &[&format!("LOCK TABLES {TABLE} WRITE")],
            Server::Sqlite(_) => &["BEGIN EXCLUSIVE"],
            Server::Nats(_) => panic!("NATS has no tables"),
        };
        lock.iter().for_each(|sql| session.execute(sql));
        session
    }

    /// Takes a lock that keeps everybody else from writing to this election's row, until the session is dropped.
    pub(crate) fn lock_row(&self, election: &str) -> SqlSession {
        let mut session = self.session();
        session.execute("BEGIN");
        session.execute(&format!("SELECT 1 FROM {TABLE} WHERE name = '{election}' FOR UPDATE"));
        session
    }

    /// Ends all sessions of candidates.
    pub(crate) fn end_sessions(&self) {
        self.end_sessions_except(0);
    }

    fn end_sessions_except(&self, kept: i64) {
        let mut session = self.session();
        match &self.server {
            Server::Postgres(_) => session.execute(&format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE usename = '{USER}' AND pid <> {kept}"
            )),
            _ => {
                let ids = session.numbers(&format!(
                    "SELECT CAST(id AS SIGNED) FROM information_schema.processlist
                     WHERE user = '{USER}' AND id <> {kept}"
                ));
                for id in ids {
                    // It may have ended by itself.
                    session.try_execute(&format!("KILL {id}"));
                }
            }
        }
    }

    /// From now on transactions write nothing, or do again.
    pub(crate) fn set_read_only(&self, read_only: bool) {
        let mut session = self.session();
        if let Server::Postgres(_) = self.server {
            let set = format!("ALTER SYSTEM SET default_transaction_read_only = {read_only}");
            session.execute(&set);
            session.execute("SELECT pg_reload_conf()");
        } else {
            session.execute(&format!("SET GLOBAL read_only = {read_only}"));
        }
    }

    /// Somebody else has the only connection that candidates may have, all of them together, until
    /// [`unlimit_connections`](Self::unlimit_connections).
    pub(crate) fn take_all_connections(&self) -> SqlSession {
        let (mut taker, own_id) = match &self.server {
            Server::Postgres(server) => (
                SqlSession::postgres(&server.url_of(USER, "postgres")),
                "SELECT pg_backend_pid()::bigint",
            ),
            Server::Mariadb(server) => (
                SqlSession::mysql(&server.url_of(USER, "app")),
                "SELECT CAST(CONNECTION_ID() AS SIGNED)",
            ),
            _ => panic!("{} has no users", self.kind),
        };
        let kept = taker.numbers(own_id)[0];
        self.limit_connections("1");
        self.end_sessions_except(kept);
        taker
    }

    /// Candidates may have as many connections as they have now, all of them together.
    pub(crate) fn allow_no_more_connections(&self) {
        self.limit_connections(&self.sessions().to_string());
    }

    /// There are enough again.
    pub(crate) fn unlimit_connections(&self) {
        self.limit_connections(match &self.server {
            Server::Postgres(_) => "-1",
            _ => ENOUGH,
        });
    }

    fn limit_connections(&self, limit: &str) {
        self.execute(&match &self.server {
            Server::Postgres(_) => format!("ALTER ROLE {USER} CONNECTION LIMIT {limit}"),
            _ => format!("ALTER USER {USER}@'%' WITH MAX_USER_CONNECTIONS {limit}"),
        });
    }

    /// A session of the application, through the pooler.
    pub(crate) fn pooled_session(&self) -> SqlSession {
        let (pooler, _) = self.pooler.as_ref().expect("a scenario that needs a pooler says so");
        SqlSession::postgres(&pooler.url_of(USER, "postgres"))
    }

    /// How many sessions candidates have.
    pub(crate) fn sessions(&self) -> u64 {
        let count = match &self.server {
            Server::Postgres(_) => {
                format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{USER}'")
            }
            _ => format!(
                "SELECT CAST(count(*) AS SIGNED) FROM information_schema.processlist WHERE user = '{USER}'"
            ),
        };
        self.session().numbers(&count)[0].unsigned_abs()
    }

    /// What the leases of all elections take.
    pub(crate) fn store_bytes(&self) -> u64 {
        let size = match &self.server {
            Server::Postgres(_) => format!("SELECT pg_total_relation_size('{TABLE}')"),
            Server::Mariadb(_) => format!(
                "SELECT CAST(data_length + index_length AS SIGNED) FROM information_schema.tables
                 WHERE table_name = '{TABLE}'"
            ),
            Server::Sqlite(_) => return fs::metadata(self.file()).map_or(0, |file| file.len()),
            Server::Nats(server) => return nats::bucket_bytes(&server.url()),
        };
        self.session().numbers(&size)[0].unsigned_abs()
    }
}
