//! The order of jobs: jobs enter with their urgency and their producer, and leave in the order in which they are due.
//!
//! Each urgency has a lane, each producer a row in it; rows take turns. Of the lanes, the job that is due first by its
//! number goes: a lane of less urgency counts its numbers as if they had been given later, so that its jobs are overtaken
//! by so many newer ones, and by no more. That is ageing without a clock.

use smallvec::SmallVec;
use std::collections::VecDeque;

/// Urgencies.
pub(crate) const LANES: usize = 3;

/// What is to be done with a job that is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It leaves.
    Take,
    /// It stays; the next one is looked at.
    Pass,
    /// It stays, and no other is looked at.
    Enough,
}

/// Jobs in the order in which they are due.
pub(crate) struct Lanes<T> {
    lanes: [Lane<T>; LANES],
    /// By how many newer jobs one of the next urgency may be overtaken.
    ageing: u64,
}

struct Lane<T> {
    rows: Vec<Row<T>>,
    /// The row whose turn it is.
    turn: usize,
}

struct Row<T> {
    producer: u64,
    jobs: VecDeque<(u64, T)>,
}

/// How far a look into one lane has come.
struct Cursor {
    /// How many jobs of each row were looked at in whole rounds.
    depth: usize,
    /// Rows that were looked at in this round.
    row: usize,
}

/// A job's place: lane, row, position.
type Spot = (usize, usize, usize);
/// Those that are taken at once: most often few.
type Spots = SmallVec<[Spot; 32]>;

impl<T> Lanes<T> {
    pub(crate) fn new(ageing: u64) -> Lanes<T> {
        let lanes = std::array::from_fn(|_| Lane { rows: Vec::new(), turn: 0 });
        Lanes { lanes, ageing }
    }

    /// A job of this number at the end of its producer's row.
    pub(crate) fn push(&mut self, lane: usize, producer: u64, number: u64, job: T) {
        self.row(lane, producer).jobs.push_back((number, job));
    }

    /// A job that left and has to come back, at the beginning of its row.
    pub(crate) fn push_front(&mut self, lane: usize, producer: u64, number: u64, job: T) {
        self.row(lane, producer).jobs.push_front((number, job));
    }

    fn row(&mut self, lane: usize, producer: u64) -> &mut Row<T> {
        let rows = &mut self.lanes[lane].rows;
        if let [only] = &mut rows[..]
            && only.jobs.is_empty()
        {
            only.producer = producer;
        }
        let at = rows.iter().position(|row| row.producer == producer).unwrap_or_else(|| {
            rows.push(Row { producer, jobs: VecDeque::new() });
            rows.len() - 1
        });
        &mut rows[at]
    }

    /// Looks at up to `most` jobs in the order in which they are due, and takes out those that `judge` says.
    pub(crate) fn take(&mut self, most: usize, mut judge: impl FnMut(&T) -> Verdict, mut taken: impl FnMut(T)) {
        let Some(only) = self.only_row() else { return self.take_in_turns(most, 0, judge, taken) };
        // Most often: there is nothing to be ordered.
        for looked in 0..most {
            let Some((_, first)) = only.front() else { return };
            match judge(first) {
                Verdict::Take => only.pop_front().into_iter().for_each(|(_, job)| taken(job)),
                Verdict::Pass => return self.take_in_turns(most - looked - 1, 1, judge, taken),
                Verdict::Enough => return,
            }
        }
    }

    /// The row that all jobs are in, if there is one.
    fn only_row(&mut self) -> Option<&mut VecDeque<(u64, T)>> {
        let mut found = None;
        for lane in &mut self.lanes {
            match &mut lane.rows[..] {
                [] => {}
                [row] if row.jobs.is_empty() => {}
                [row] if found.is_none() => found = Some(&mut row.jobs),
                _ => return None,
            }
        }
        found
    }

    /// The same for several rows; so many first jobs of each were looked at before.
    fn take_in_turns(
        &mut self,
        most: usize,
        depth: usize,
        mut judge: impl FnMut(&T) -> Verdict,
        mut taken: impl FnMut(T),
    ) {
        let mut cursors: [Cursor; LANES] = std::array::from_fn(|_| Cursor { depth, row: 0 });
        // Few are taken at once; they leave in the end, so that no position moves meanwhile.
        let mut spots = Spots::new();
        let mut heads: [Option<(u64, Spot)>; LANES] = std::array::from_fn(|lane| self.look(lane, &mut cursors[lane]));
        for _ in 0..most {
            let Some((_, spot)) = heads.iter().flatten().min_by_key(|(due, _)| *due).copied() else { break };
            let lane = spot.0;
            match judge(&self.lanes[lane].rows[spot.1].jobs[spot.2].1) {
                Verdict::Take => spots.push(spot),
                Verdict::Pass => {}
                Verdict::Enough => break,
            }
            cursors[lane].row += 1;
            heads[lane] = self.look(lane, &mut cursors[lane]);
        }
        self.remove(spots, &mut taken);
    }

    /// The next job of a lane to look at, and by which number it is due.
    fn look(&self, lane: usize, cursor: &mut Cursor) -> Option<(u64, Spot)> {
        let (row, at) = self.lanes[lane].next(cursor)?;
        let number = self.lanes[lane].rows[row].jobs[at].0;
        Some((number.saturating_add(self.ageing.saturating_mul(lane as u64)), (lane, row, at)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.rows.iter().all(|row| row.jobs.is_empty()))
    }

    /// Takes all.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        let mut all = Vec::new();
        for lane in &mut self.lanes {
            lane.turn = 0;
            all.extend(lane.rows.drain(..).flat_map(|row| row.jobs).map(|(_, job)| job));
        }
        all
    }

    fn remove(&mut self, spots: Spots, taken: &mut impl FnMut(T)) {
        let count = spots.len();
        if are_first(&spots) {
            // Nearly always.
            for (lane, row, _) in &spots {
                self.lanes[*lane].rows[*row].jobs.pop_front().into_iter().for_each(|(_, job)| taken(job));
            }
        } else {
            let mut order: Vec<usize> = (0..count).collect();
            let mut jobs: Vec<Option<T>> = (0..count).map(|_| None).collect();
            // From the back, so that positions stay true.
            order.sort_by(|a, b| spots[*b].cmp(&spots[*a]));
            for number in order {
                let (lane, row, at) = spots[number];
                jobs[number] = self.lanes[lane].rows[row].jobs.remove(at).map(|(_, job)| job);
            }
            jobs.into_iter().flatten().for_each(taken);
        }
        for (lane, row, _) in &spots {
            self.lanes[*lane].turn = row + 1;
        }
        self.lanes.iter_mut().for_each(Lane::tidy);
    }
}

/// Are these jobs, in this order, the first ones of their rows?
fn are_first(spots: &[Spot]) -> bool {
    let mut taken: SmallVec<[((usize, usize), usize); 8]> = SmallVec::new();
    spots.iter().all(|(lane, row, at)| match taken.iter_mut().find(|(of, _)| *of == (*lane, *row)) {
        Some((_, count)) => {
            *count += 1;
            *at + 1 == *count
        }
        None => {
            taken.push(((*lane, *row), 1));
            *at == 0
        }
    })
}

impl<T> Lane<T> {
    /// The next job to look at: its row and its position there.
    fn next(&self, cursor: &mut Cursor) -> Option<(usize, usize)> {
        let rows = self.rows.len();
        loop {
            let mut longer = false;
            while cursor.row < rows {
                let row = (self.turn + cursor.row) % rows;
                if cursor.depth < self.rows[row].jobs.len() {
                    return Some((row, cursor.depth));
                }
                cursor.row += 1;
            }
            longer |= self.rows.iter().any(|row| row.jobs.len() > cursor.depth + 1);
            if !longer {
                return None;
            }
            *cursor = Cursor { depth: cursor.depth + 1, row: 0 };
        }
    }

    /// Rows without jobs go; whose turn it is stays.
    fn tidy(&mut self) {
        let mut at = 0;
        while at < self.rows.len() {
            // One row is kept, with its memory: most often there is one producer.
            if self.rows[at].jobs.is_empty() && self.rows.len() > 1 {
                self.rows.remove(at);
                if self.turn > at {
                    self.turn -= 1;
                }
            } else {
                at += 1;
            }
        }
        if self.turn >= self.rows.len() {
            self.turn = 0;
        }
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
