//! Rings of values over time, at three resolutions at once.
//!
//! Invariant  All rings have the same layout, and all are cleared for the same steps: [`Steps`] says which step a ring
//!            holds. So rings need no times of their own, and two can be added up cell by cell.

/// The seconds of a step and the number of steps that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    pub(crate) step: u64,
    pub(crate) steps: usize,
    /// The cell of a ring at which the steps of this resolution begin.
    start: usize,
}

/// The resolutions of five minutes, an hour and a day.
pub(super) const RESOLUTIONS: [Resolution; 3] = [
    Resolution { step: 1, steps: 300, start: 0 },
    Resolution { step: 10, steps: 360, start: 300 },
    Resolution { step: 60, steps: 1_440, start: 660 },
];

const CELLS: usize = 2_100;

impl Resolution {
    /// The cell of the step that holds `second`.
    fn cell(self, second: u64) -> usize {
        // The remainder is below `steps`.
        self.start + (second / self.step % self.steps as u64) as usize
    }

    /// The beginnings of the steps that are kept at `second`, oldest first.
    pub(super) fn kept(self, second: u64) -> impl Iterator<Item = u64> {
        let last = second / self.step;
        let first = (last + 1).saturating_sub(self.steps as u64);
        (first..=last).map(move |number| number * self.step)
    }
}

/// A value for each step.
#[derive(Clone, Debug)]
pub(super) struct Rings<T>(Box<[T]>);

impl<T: Clone + Default> Default for Rings<T> {
    fn default() -> Rings<T> {
        Rings(vec![T::default(); CELLS].into())
    }
}

impl<T: Clone + Default> Rings<T> {
    pub(super) fn get(&self, resolution: Resolution, second: u64) -> &T {
        &self.0[resolution.cell(second)]
    }

    pub(super) fn get_mut(&mut self, resolution: Resolution, second: u64) -> &mut T {
        &mut self.0[resolution.cell(second)]
    }

    /// Changes the steps that hold `second`, one of each resolution.
    pub(super) fn change(&mut self, second: u64, change: impl Fn(&mut T)) {
        for resolution in RESOLUTIONS {
            change(self.get_mut(resolution, second));
        }
    }

    /// Resets the steps that hold these seconds.
    pub(super) fn clear(&mut self, begun: &[(Resolution, u64)]) {
        for &(resolution, second) in begun {
            *self.get_mut(resolution, second) = T::default();
        }
    }

    /// Changes every value by the value of the same step in `other`.
    pub(super) fn merge(&mut self, other: &Rings<T>, change: impl Fn(&mut T, &T)) {
        for (value, other) in self.0.iter_mut().zip(&other.0) {
            change(value, other);
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of_val(&*self.0)
    }
}

/// Which steps the rings hold, and which of them were measured.
#[derive(Debug)]
pub(super) struct Steps {
    first: u64,
    /// The newest second that the rings hold.
    pub(super) last: u64,
    is_measured: Rings<bool>,
}

impl Steps {
    pub(super) fn new(second: u64) -> Steps {
        let mut is_measured = Rings::default();
        is_measured.change(second, |is_measured| *is_measured = true);
        Steps { first: second, last: second, is_measured }
    }

    /// Moves on to `second`. Returns the steps that begin, each by one of its seconds. The steps before the last one
    /// count as measured unless there `is_gap`.
    pub(super) fn advance(&mut self, second: u64, is_gap: bool) -> Vec<(Resolution, u64)> {
        let mut begun = Vec::new();
        for resolution in RESOLUTIONS {
            let last = self.last / resolution.step;
            begun.extend(
                resolution.kept(second).filter(|start| start / resolution.step > last).map(|start| (resolution, start)),
            );
        }
        for &(resolution, start) in &begun {
            *self.is_measured.get_mut(resolution, start) = !is_gap;
        }
        self.last = second;
        self.is_measured.change(second, |is_measured| *is_measured = true);
        begun
    }

    /// Whether the step that holds `second` was measured.
    pub(super) fn is_measured(&self, resolution: Resolution, second: u64) -> bool {
        let is_kept = second / resolution.step >= self.first / resolution.step;
        is_kept && *self.is_measured.get(resolution, second)
    }
}
