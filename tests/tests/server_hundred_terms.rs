//! What a hundred terms leave behind, on PostgreSQL.

mod scenarios;

use scenarios::{grounds::PostgresServer, leaks};

#[test]
fn a_hundred_terms_leave_nothing_behind() {
    leaks::a_hundred_terms_leave_nothing_behind(PostgresServer::shared());
}
