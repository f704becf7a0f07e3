//! A token bucket with 500 a second and 500 in stock: about 1000 pass in the first second, then 500 a second.

#![allow(clippy::print_stdout, reason = "an example shows something")]

use std::time::{Duration, Instant};

use flowgate::Single;

fn main() -> Result<(), flowgate::LimitError> {
    let bucket = Single::new("bucket 500/s")?;
    let start = Instant::now();
    for second in 1..=3 {
        let mut passed = 0;
        while start.elapsed() < Duration::from_secs(second) {
            passed += u32::from(bucket.take().allowed());
            std::thread::sleep(Duration::from_micros(100));
        }
        println!("second {second}: {passed} passed");
    }
    Ok(())
}
