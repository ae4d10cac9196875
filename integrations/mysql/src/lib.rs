//! Leases in a MySQL or MariaDB table, for [tenure].
