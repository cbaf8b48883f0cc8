//! Jobs of all kinds for the queue, each with its number in its inputs: producers enter, and every answer is held against
//! what the number implies, whatever was cancelled, late, failed or lost on the way.

use crate::hooked::{Hooked, simulated};
use breakeven::{
    Answer, Command, Config, DType, Device, Engine, Error, Job, Kernel, Memory, Priority, Program, QueueConfig,
    SimBackend, Tensor, Ticket,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Tickets that a producer keeps before it waits for the first of them.
const IN_FLIGHT: usize = 128;
/// Nobody is late for this one.
const LONG: Duration = Duration::from_secs(600);
/// An answer that takes longer than this is missing.
const MISSING: Duration = Duration::from_secs(60);
/// Numbers below this are exact in f32, also after what the programs do with them.
const NUMBERS: u64 = 1_000_000;

/// Random numbers that are the same in every run (xorshift64*).
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next one below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What became of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Answered with what their inputs imply.
    pub right: u64,
    /// Cancelled, and `cancel` said so.
    pub cancelled: u64,
    /// Their deadline has passed.
    pub late: u64,
}

impl Tally {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.right + self.cancelled + self.late
    }

    /// With those of another producer.
    pub fn add(&mut self, other: Tally) {
        self.right += other.right;
        self.cancelled += other.cancelled;
        self.late += other.late;
    }
}

/// An engine whose queue has the CPU, a device that is lost now and then, and one that fails at every tenth batch. A third
/// one, which is sound, carries out commands: what is lost with a device that a caller drives himself is his affair.
pub struct Mix {
    /// The engine.
    pub engine: Engine,
    lossy: SimBackend,
    double: Program,
    sums: Program,
}

/// What the answer to a job must be.
enum Expected {
    Double { number: u64, elems: usize },
    Sums { number: u64 },
    Successors { number: u64 },
    Done,
    Doubled { number: u64 },
}

struct InFlight {
    ticket: Ticket,
    expected: Expected,
    begun: Instant,
    deadline: Option<Duration>,
    was_cancelled: bool,
}

/// Memory that one producer drives.
struct Own {
    input: Memory,
    output: Memory,
}

impl Mix {
    /// Starts an engine.
    pub fn new() -> Result<Mix, Error> {
        let lossy = simulated("gpu:0", 0.5);
        let failing = Hooked::failing(simulated("gpu:1", 0.5), 10);
        let devices = vec![Device::Cpu, Device::Gpu(Some(0)), Device::Gpu(Some(1))];
        let queue = QueueConfig { devices, capacity: 1024, ..QueueConfig::default() };
        let config = Config { device: Device::Cpu, queue, ..Config::default() };
        let backends: Vec<Arc<dyn breakeven::backend::Backend>> =
            vec![Arc::new(lossy.clone()), Arc::new(failing), Arc::new(simulated("gpu:2", 0.5))];
        let engine = Engine::with_backends(config, backends)?;
        let x = Tensor::input("x", DType::F32, [4])?;
        let double = engine.compile(&[&x], &[&((&x * 2.0)? + 1.0)?])?;
        let x = Tensor::input("x", DType::F32, [8])?;
        let sums = engine.compile(&[&x], &[&x.sum(&[], false)?, &(&x - 1.0)?])?;
        Ok(Mix { engine, lossy, double, sums })
    }

    /// Loses and recovers a device and makes its batches fail, until it is told that it is enough.
    pub fn disturb(&self, running: &AtomicBool) {
        let mut random = Random::new(77);
        while running.load(Relaxed) {
            match random.below(3) {
                0 => self.lossy.fail_next(1 + random.below(4) as usize),
                1 => {
                    self.lossy.lose("it was disturbed");
                    std::thread::sleep(Duration::from_micros(random.below(3_000)));
                    self.lossy.recover();
                }
                _ => {}
            }
            std::thread::sleep(Duration::from_micros(random.below(4_000)));
        }
        self.lossy.fail_next(0);
        self.lossy.recover();
    }

    /// Submits jobs while `more` says so and checks all answers. An answer that is wrong or missing is told.
    pub fn produce(&self, producer: u64, mut more: impl FnMut() -> bool) -> Result<Tally, String> {
        let mut random = Random::new(producer + 1);
        let mut in_flight = VecDeque::new();
        let mut tally = Tally::default();
        let own = [self.memory(Device::Cpu)?, self.memory(Device::Gpu(Some(2)))?];
        let mut number = producer * (NUMBERS / 8) % NUMBERS;
        while more() {
            number = (number + 1) % NUMBERS;
            if random.once_in(40) {
                let own = &own[random.below(2) as usize];
                self.command_in_turn(own, number, &mut in_flight)?;
            } else {
                let job = self.submit(number, &mut random)?;
                in_flight.push_back(job);
            }
            if random.once_in(16) {
                let at = random.below(in_flight.len() as u64) as usize;
                // What drives memory is not cancelled: what comes after it would find other contents.
                if !in_flight[at].expected.is_command() && in_flight[at].ticket.cancel() {
                    in_flight[at].was_cancelled = true;
                }
            }
            while in_flight.len() > IN_FLIGHT {
                let Some(first) = in_flight.pop_front() else { break };
                first.check(&mut tally)?;
            }
        }
        in_flight.into_iter().try_for_each(|job| job.check(&mut tally))?;
        Ok(tally)
    }

    fn memory(&self, device: Device) -> Result<Own, String> {
        let allocate = || self.engine.allocate(device, 16).map_err(|error| error.to_string());
        Ok(Own { input: allocate()?, output: allocate()? })
    }

    fn submit(&self, number: u64, random: &mut Random) -> Result<InFlight, String> {
        let value = number as f32;
        let values = |elems: usize| Tensor::from_vec(vec![value; elems], [elems]).map_err(|error| error.to_string());
        let (job, expected) = match random.below(50) {
            0..30 => (Job::program(&self.double, [values(4)?]), Expected::Double { number, elems: 4 }),
            // Of another size than it was recorded with.
            30..34 => (Job::program(&self.double, [values(6)?]), Expected::Double { number, elems: 6 }),
            34..48 => (Job::program(&self.sums, [values(8)?]), Expected::Sums { number }),
            _ => {
                let successors = (&values(3)? + 1.0).map_err(|error| error.to_string())?;
                (Job::batch(&[&successors]), Expected::Successors { number })
            }
        };
        let deadline = match random.below(20) {
            0 => Some(Duration::from_micros(1 + random.below(100))),
            1 => Some(Duration::from_micros(1_000 + random.below(4_000))),
            2 | 3 => Some(LONG),
            _ => None,
        };
        let job = match random.below(10) {
            0..6 => job,
            6 => job.device(Device::Gpu(Some(0))),
            7 => job.device(Device::Gpu(Some(1))),
            8 => job.device(Device::All),
            _ => job.device(Device::Cpu),
        };
        let job = if random.once_in(8) { job.alone() } else { job };
        let job = match random.below(4) {
            0 => job.priority(Priority::Interactive),
            1 => job.priority(Priority::Bulk),
            _ => job,
        };
        let job = if let Some(deadline) = deadline { job.deadline(deadline) } else { job };
        let way = random.below(8);
        let (begun, ticket) = loop {
            let begun = Instant::now();
            let submitted = match way {
                0 => self.engine.try_submit(job.clone()),
                1 => self.engine.submit_timeout(job.clone(), Duration::from_micros(50)),
                _ => self.engine.submit(job.clone()),
            };
            match submitted {
                Ok(ticket) => break (begun, ticket),
                Err(Error::QueueFull { .. }) if way < 2 => std::thread::yield_now(),
                Err(error) => return Err(format!("job {number} was refused: {error}")),
            }
        };
        Ok(InFlight { ticket, expected, begun, deadline, was_cancelled: false })
    }

    /// Writes, runs and reads: three commands, each of which needs what the one before has done.
    fn command_in_turn(&self, own: &Own, number: u64, in_flight: &mut VecDeque<InFlight>) -> Result<(), String> {
        let data: Vec<u8> = [number as f32; 4].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let kernel = Kernel::Program(self.double.clone());
        let commands = [
            (Command::Write { memory: own.input.clone(), offset: 0, data: data.into() }, Expected::Done),
            (
                Command::Launch { kernel, inputs: vec![own.input.clone()], outputs: vec![own.output.clone()] },
                Expected::Done,
            ),
            (Command::Read { memory: own.output.clone(), offset: 0, bytes: 16 }, Expected::Doubled { number }),
        ];
        for (command, expected) in commands {
            let begun = Instant::now();
            let ticket = self.engine.submit(Job::command(command)).map_err(|error| format!("command: {error}"))?;
            in_flight.push_back(InFlight { ticket, expected, begun, deadline: None, was_cancelled: false });
        }
        Ok(())
    }
}

impl Expected {
    fn is_command(&self) -> bool {
        matches!(self, Expected::Done | Expected::Doubled { .. })
    }

    /// What is wrong with an answer.
    fn compare(&self, answer: &Answer) -> Option<String> {
        let slices = |answer: &Answer| match answer {
            Answer::Arrays { outputs, .. } => {
                let slices = outputs.iter().map(|array| array.as_slice::<f32>().map(<[f32]>::to_vec));
                slices.collect::<Result<Vec<_>, _>>().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let (found, right) = match self {
            Expected::Double { number, elems } => (slices(answer), vec![vec![(2 * number + 1) as f32; *elems]]),
            Expected::Sums { number } => {
                (slices(answer), vec![vec![(8 * number) as f32], vec![*number as f32 - 1.0; 8]])
            }
            Expected::Successors { number } => (slices(answer), vec![vec![(number + 1) as f32; 3]]),
            Expected::Done => {
                return (!matches!(answer, Answer::Done)).then(|| format!("{answer:?} in the place of nothing"));
            }
            Expected::Doubled { number } => {
                let right = [((2 * number + 1) as f32).to_ne_bytes(); 4].concat();
                let is_right = matches!(answer, Answer::Bytes(bytes) if bytes[..] == right[..]);
                return (!is_right).then(|| format!("{answer:?} in the place of {right:?}"));
            }
        };
        (found != right).then(|| format!("{found:?} in the place of {right:?}"))
    }
}

impl InFlight {
    fn check(self, tally: &mut Tally) -> Result<(), String> {
        let id = self.ticket.id();
        let wrong = |why: String| Err(format!("job {id}, {:?} after its submission: {why}", self.begun.elapsed()));
        if self.ticket.wait_timeout(MISSING).is_none() {
            return wrong("it was not answered".into());
        }
        match (self.ticket.wait(), self.was_cancelled) {
            (Ok(answer), false) => match self.expected.compare(&answer) {
                Some(why) => return wrong(why),
                None => tally.right += 1,
            },
            (Err(Error::Cancelled), true) => tally.cancelled += 1,
            (Err(Error::DeadlineExceeded { deadline }), false) => {
                let is_due = self.deadline == Some(deadline) && deadline < LONG && self.begun.elapsed() >= deadline;
                if !is_due {
                    return wrong(format!("late by {deadline:?}, its deadline is {:?}", self.deadline));
                }
                tally.late += 1;
            }
            (answer, was_cancelled) => return wrong(format!("{answer:?}, cancelled: {was_cancelled}")),
        }
        Ok(())
    }
}
