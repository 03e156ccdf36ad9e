//! Everything about distributed queries that does not depend on how Python reaches it.
//!
//! A strategy adapts: it gets a session from this crate, hands it to Python in its own way, and starts workers
//! through it. What two strategies would both need stands here, once, so that the arms of a comparison differ in
//! nothing but the strategy.
//!
//! | module | concern |
//! |---|---|
//! | [`fingerprint`] | what this binary was built from, compared before any two processes work together |
//! | [`spec`] | the cluster as the user describes it |
//! | [`membership`] | which workers exist right now |
//! | [`security`] | TLS, bearer token |
//! | [`channel`] | connections to workers |
//! | [`options`] | the options `distributed.*` |
//! | [`settings`], [`functions`], [`stores`] | session options, the user's functions and object stores on their way to the workers |
//! | [`session`] | a session that plans distributed queries |
//! | [`planner`], [`guard`] | distributing a plan, or saying why not |
//! | [`exec`], [`inspect`] | the executable plan and what can be told about it |
//! | [`worker`] | the server side |
//! | [`local`] | a coordinator that is a worker too |

pub mod channel;
pub mod exec;
pub mod fingerprint;
pub mod functions;
pub mod guard;
pub mod inspect;
pub mod local;
pub mod membership;
pub mod options;
pub mod planner;
pub mod security;
pub mod session;
pub mod settings;
pub mod spec;
pub mod status;
pub mod stores;
pub mod worker;

pub use session::{Cluster, install, install_state};
pub use spec::ClusterSpec;
