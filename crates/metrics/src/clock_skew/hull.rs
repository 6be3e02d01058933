//! Lower convex hull of points added one by one.

use std::cmp::Ordering;

/// Max corners; beyond that, every second one is removed. Hulls of delays with a steady skew have some tens.
const MAX_CORNERS: usize = 512;

/// A point of (time, delay), both in nanoseconds.
pub(super) type Corner = (i64, i64);

/// Corners of the lower convex hull of all points so far, in the order of time.
///
/// Adding a point costs a search among the corners, and less if it is the latest. Where corners were removed, the hull
/// is slightly above the true one.
#[derive(Clone, Debug, Default)]
pub(super) struct Hull {
    /// Corners in the order of time.
    pub(super) corners: Vec<Corner>,
}

impl Hull {
    /// Adds a point, in any order of time.
    pub(super) fn insert(&mut self, point: Corner) {
        let at = self.corners.partition_point(|corner| corner.0 < point.0);
        let here = self.corners.get(at).copied();
        let is_above = match (at.checked_sub(1).map(|left| self.corners[left]), here) {
            (_, Some(here)) if here.0 == point.0 => here.1 <= point.1,
            (Some(left), Some(right)) => turn(left, point, right) != Ordering::Greater,
            _ => false,
        };
        if is_above {
            return;
        }
        match here {
            Some(here) if here.0 == point.0 => self.corners[at] = point,
            _ => self.corners.insert(at, point),
        }
        self.straighten_after(at);
        self.straighten_before(at);
        if self.corners.len() > MAX_CORNERS {
            self.thin();
        }
    }

    /// Removes corners after `at` that are no longer convex.
    fn straighten_after(&mut self, at: usize) {
        let rest = &self.corners[at..];
        let stays = |three: &[Corner]| turn(three[0], three[1], three[2]) == Ordering::Greater;
        // The corners after it are already convex. Only the new corner can change that, beginning with its neighbour.
        let gone = (1..rest.len().saturating_sub(1))
            .take_while(|next| !stays(&[rest[0], rest[*next], rest[next + 1]]))
            .count();
        self.corners.drain(at + 1..at + 1 + gone);
    }

    /// Removes corners before `at` that are no longer convex.
    fn straighten_before(&mut self, at: usize) {
        let mut first = at;
        while first >= 2
            && turn(self.corners[first - 2], self.corners[first - 1], self.corners[at])
                != Ordering::Greater
        {
            first -= 1;
        }
        self.corners.drain(first..at);
    }

    fn thin(&mut self) {
        let last = self.corners.len() - 1;
        let mut index = 0..;
        self.corners.retain(|_| index.next().is_some_and(|at| at % 2 == 0 || at == last));
    }

    /// Edge over the time `at`, from corner to corner; `None` if there is none.
    pub(super) fn edge(&self, at: i64) -> Option<(Corner, Corner)> {
        let last = self.corners.len().checked_sub(1)?;
        let right = self.corners.partition_point(|corner| corner.0 <= at).clamp(1, last.max(1));
        Some((*self.corners.get(right - 1)?, *self.corners.get(right)?))
    }
}

/// Direction of the turn from `a` over `b` to `c`: up (greater), straight, or down. Points are in the order of time.
fn turn(a: Corner, b: Corner, c: Corner) -> Ordering {
    let difference = |to: i64, from: i64| i128::from(to) - i128::from(from);
    let before = difference(b.1, a.1) * difference(c.0, b.0);
    let after = difference(c.1, b.1) * difference(b.0, a.0);
    after.cmp(&before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hull(points: &[Corner]) -> Hull {
        let mut hull = Hull::default();
        points.iter().for_each(|point| hull.insert(*point));
        hull
    }

    #[test]
    fn edge_over_a_time_surrounds_it() {
        let hull = hull(&[(0, 0), (10, -10), (20, 0)]);
        assert_eq!(hull.edge(10), Some(((10, -10), (20, 0))));
        assert_eq!(hull.edge(-5), Some(((0, 0), (10, -10))));
        assert_eq!(hull.edge(99), Some(((10, -10), (20, 0))));
        assert_eq!(super::tests::hull(&[(1, 1)]).edge(1), None);
        assert_eq!(Hull::default().edge(1), None);
    }

    #[test]
    fn large_hull_is_bounded_and_keeps_its_ends() {
        let points: Vec<_> = (0..10_000).map(|time| (time, time * time)).collect();
        let hull = hull(&points);
        assert!(hull.corners.len() <= MAX_CORNERS);
        assert_eq!((hull.corners[0], hull.corners.last()), ((0, 0), points.last()));
    }

    proptest! {
        #[test]
        fn hull_is_convex_and_below_every_point(
            points in prop::collection::vec((-50i64..50, -50i64..50), 1..80),
        ) {
            let hull = hull(&points);
            for corners in hull.corners.windows(3) {
                prop_assert_eq!(turn(corners[0], corners[1], corners[2]), Ordering::Greater);
            }
            prop_assert!(hull.corners.iter().all(|corner| points.contains(corner)));
            for point in points {
                let Some((left, right)) = hull.edge(point.0) else { continue };
                prop_assert!((left.0..=right.0).contains(&point.0));
                let below = i128::from(left.1) * i128::from(right.0 - left.0)
                    + i128::from(right.1 - left.1) * i128::from(point.0 - left.0);
                prop_assert!(below <= i128::from(point.1) * i128::from(right.0 - left.0));
            }
        }
    }
}
