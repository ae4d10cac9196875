#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tenure_nats::check_value(bytes));
