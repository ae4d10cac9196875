//! `mysql:`, which is MySQL and MariaDB.

use tenure::DynStore;

use super::Kind;
use crate::{
    error::ElectionConfigError,
    options::{Known, Options},
};

const TABLE: Known = Known::plain("table");

pub(super) const KIND: Kind =
    Kind { name: "mysql", schemes: &["mysql", "mariadb"], options: &[TABLE], connect };

fn connect(_: &str, _: &Options) -> Result<DynStore, ElectionConfigError> {
    super::feature_off("mysql")
}
