//! `grpc.health.v1.Health`: whether this server takes calls.
//!
//! Rule       `""` and the name of the service are known. A server that stops is NOT_SERVING from that moment on; one
//!            without its shared store goes on and is SERVING.
//! Rule       A watch ends when the server stops, so that it does not keep its connection open.

use std::pin::Pin;

use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::Stream;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health as HealthService;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::SERVICE;
use crate::readiness::{Readiness, Ready};

#[derive(Clone, Debug)]
pub(super) struct Health {
    pub(super) readiness: Readiness,
}

#[tonic::async_trait]
impl HealthService for Health {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        check_name(request.get_ref())?;
        Ok(Response::new(status(&self.readiness.get())))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        check_name(request.get_ref())?;
        let (sender, statuses) = mpsc::channel(1);
        let mut readiness = self.readiness.subscribe();
        tokio::spawn(async move {
            let mut told = None;
            loop {
                let ready = readiness.borrow_and_update().clone();
                let status = status(&ready);
                if told != Some(status) && sender.send(Ok(status)).await.is_err() {
                    return;
                }
                told = Some(status);
                if ready == Ready::Draining {
                    return;
                }
                tokio::select! {
                    changed = readiness.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(statuses))))
    }
}

fn check_name(request: &HealthCheckRequest) -> Result<(), Status> {
    match request.service.as_str() {
        "" | SERVICE => Ok(()),
        _ => Err(Status::not_found("unknown service")),
    }
}

fn status(ready: &Ready) -> HealthCheckResponse {
    let status = match ready {
        Ready::Yes | Ready::Degraded(_) => ServingStatus::Serving,
        Ready::Draining => ServingStatus::NotServing,
    };
    HealthCheckResponse { status: status.into() }
}
