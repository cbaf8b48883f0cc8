//! What a device tells of itself: how a run went, and how it fares.

/// How a run went: what a backend tells instead of logging.
///
/// ```
/// assert_eq!(breakeven_ir::backend::Timings::default().kernels, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timings {
    /// Wall time of the run.
    pub total_ns: u64,
    /// How many kernels ran.
    pub kernels: u32,
    /// The most threads that worked on a kernel.
    pub threads: u32,
    /// Kernels as the device counts them: dispatches.
    pub dispatches: u32,
    /// Compute passes.
    pub passes: u32,
    /// Submissions to the device.
    pub submits: u32,
    /// Packed uploads: one, or none if everything was there.
    pub uploads: u32,
    /// Packed readbacks: one, or none if results stay.
    pub readbacks: u32,
    /// Bytes that went to the device.
    pub upload_bytes: u64,
    /// Bytes that came back.
    pub readback_bytes: u64,
    /// Time on the device by its own clock; 0 where it has none.
    pub device_ns: u64,
    /// Time inside of the driver's calls that hand the work over.
    pub submit_ns: u64,
    /// Time in which inputs were put where the device finds them.
    pub upload_ns: u64,
    /// Time behind other batches, before the device's owner had this one in hand.
    pub queue_ns: u64,
    /// Time from when the device was done until the results were where the host reads them.
    pub readback_ns: u64,
    /// Buffers, pipelines and bind groups that had to be created for this run.
    pub created: u32,
}

impl Timings {
    /// Counts another run's, one after the other.
    ///
    /// ```
    /// use breakeven_ir::backend::Timings;
    /// let mut total = Timings { submits: 1, total_ns: 5, ..Timings::default() };
    /// total.add(&Timings { submits: 1, total_ns: 7, ..Timings::default() });
    /// assert_eq!((total.submits, total.total_ns), (2, 12));
    /// ```
    pub fn add(&mut self, other: &Timings) {
        self.total_ns += other.total_ns;
        self.kernels += other.kernels;
        self.threads = self.threads.max(other.threads);
        self.dispatches += other.dispatches;
        self.passes += other.passes;
        self.submits += other.submits;
        self.uploads += other.uploads;
        self.readbacks += other.readbacks;
        self.upload_bytes += other.upload_bytes;
        self.readback_bytes += other.readback_bytes;
        self.device_ns += other.device_ns;
        self.submit_ns += other.submit_ns;
        self.upload_ns += other.upload_ns;
        self.queue_ns += other.queue_ns;
        self.readback_ns += other.readback_ns;
        self.created += other.created;
    }
}

/// What a device holds and has to do at the moment.
///
/// ```
/// use breakeven_ir::backend::Usage;
/// let idle = Usage { reserved_bytes: 4096, ..Usage::default() };
/// assert!(idle.is_idle() && !Usage { pending: 1, ..idle }.is_idle());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Bytes that values, plans that were made ready and batches use.
    pub in_use_bytes: u64,
    /// Bytes that it has from the system, used or kept for batches to come.
    pub reserved_bytes: u64,
    /// Batches that it was given and has not answered.
    pub pending: u32,
    /// What they take, as predicted.
    pub pending_ns: u64,
}

impl Usage {
    /// Has it nothing to do?
    pub fn is_idle(&self) -> bool {
        self.pending == 0 && self.pending_ns == 0
    }
}

/// How a device fares.
///
/// ```
/// use breakeven_ir::backend::{Health, Status};
/// let health = Health { status: Status::Warning, reason: "82 % of the memory is in use".into() };
/// assert_eq!(health.status.name(), "warning");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// In a word.
    pub status: Status,
    /// Why.
    pub reason: String,
}

/// [`Health`] in a word.
///
/// ```
/// use breakeven_ir::backend::Status;
/// assert_eq!([Status::Lost, Status::Healthy].into_iter().max(), Some(Status::Lost));   // the worst of several devices
/// assert_eq!(Status::Critical.name(), "critical");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Status {
    /// All is well.
    Healthy,
    /// It works, but something is to be looked at.
    Warning,
    /// It is about to fail, or its results are not trusted.
    Critical,
    /// It is gone.
    Lost,
}

impl Status {
    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Healthy => "healthy",
            Status::Warning => "warning",
            Status::Critical => "critical",
            Status::Lost => "lost",
        }
    }
}
