//! `GET /metrics`: what is counted, for Prometheus.

use super::reply::{self, Reply};
use crate::metrics::CONTENT_TYPE;
use crate::service::Service;

pub(super) async fn metrics(service: &Service) -> Reply {
    reply::with_type(service.prometheus().await, CONTENT_TYPE)
}
