//! Elections and stores from configuration files, for [tenure].
