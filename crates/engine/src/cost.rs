//! What work costs where: a plan's [`Work`] and a device's measured [`Costs`] enter, a [`Prediction`] leaves.

mod adjust;
mod amount;
mod costs;
mod curve;
mod derive;
mod expressions;
pub(crate) mod history;
mod measure;
pub(crate) mod probes;
mod products;
mod rows;
mod store;
mod work;

pub use adjust::Adjust;
pub use costs::{Costs, Prediction};
pub use curve::{Curve, Family};
pub use expressions::{Expression, expression};
pub use measure::{Effort, Measured, Progress};
pub use products::ProductCost;
pub use rows::Rows;
pub use store::{CostsFile, DeviceKey};
pub use work::{KernelWork, Work};

pub(crate) use adjust::{Features, KINDS, features, fit, kind};
pub(crate) use measure::{Bench, measure, telling_steps};
