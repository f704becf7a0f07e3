//! What the binary does by itself, without a server: a library, so that tests and fuzz targets reach it.

pub mod replay;
