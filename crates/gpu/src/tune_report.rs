//! What tuning found, for people and for `breakeven scan`.

/// What tuning found on a device.
///
/// ```
/// use breakeven_gpu::{Adapters, Api, GpuConfig};
/// use std::time::Duration;
/// if let Ok(gpu) = Adapters::find(Api::ALL).open(0, &GpuConfig::default()) {
///     let report = gpu.tune(Duration::ZERO);     // no time for anything but what is known
///     for class in &report.classes {
///         println!("{}: {} {}", class.class, class.in_use, class.why);
///     }
///     assert_eq!(report.classes.len(), 3);
/// }
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TuneReport {
    /// Each class of kernels that has variants.
    pub classes: Vec<TunedClass>,
    /// Is everything measured?
    pub complete: bool,
    /// Why it ended early, if the device failed.
    pub stopped: Option<String>,
}

/// What tuning found about a class of kernels.
///
/// ```
/// let class = breakeven_gpu::TunedClass { class: "map".into(), ..Default::default() };
/// assert!(class.winner.is_none(), "not all of its variants were measured");
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TunedClass {
    /// `map`, `rows` (reductions and scans) or `tile` (matrix products).
    pub class: String,
    /// What there was to choose from.
    pub variants: Vec<TunedVariant>,
    /// Who won, once all were measured.
    pub winner: Option<String>,
    /// Why it won.
    pub why: String,
    /// What new plans use.
    pub in_use: String,
}

/// A variant with its time.
///
/// ```
/// let variant = breakeven_gpu::TunedVariant { name: "64 invocations of 4 points, 16 times".into(), ..Default::default() };
/// assert_eq!((variant.median_ns, variant.measurements), (None, 0));
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TunedVariant {
    /// What sets it apart.
    pub name: String,
    /// The median of its measurements.
    pub median_ns: Option<u64>,
    /// How often it was measured.
    pub measurements: usize,
    /// Why it can't be chosen, if so: the device refuses it, or its results are wrong.
    pub out: Option<String>,
}
