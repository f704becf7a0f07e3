//! `flowgate import`: other systems' rules as Flowgate's.

mod envoy;
mod koala;

/// Print another system's rules as a configuration
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, clap::Subcommand)]
enum From {
    Envoy(envoy::EnvoyArgs),
    Koala(koala::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match args.from {
        From::Envoy(args) => envoy::run(&args),
        From::Koala(args) => koala::run(&args),
    }
}
