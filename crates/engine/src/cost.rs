//! What work costs where: a plan's [`Work`] and a device's measured [`Costs`] enter, a [`Prediction`] leaves.

mod adjust;
mod costs;
mod curve;
mod derive;
mod expressions;
pub(crate) mod history;
mod measure;
pub(crate) mod probes;
mod store;
mod work;

pub use adjust::Adjust;
pub use costs::{Costs, Prediction, ProductCost};
pub use curve::{Curve, Family};
pub use expressions::{Expression, expression};
pub use measure::{Effort, Measured, Progress};
pub use store::{CostsFile, DeviceKey};
pub use work::{KernelWork, Work};

pub(crate) use adjust::{Features, KINDS, features, fit, kind};
pub(crate) use measure::{Bench, measure, telling_steps};
