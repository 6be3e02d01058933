//! Queue that grows without copying and releases memory.

use std::collections::VecDeque;
use std::ops::Range;

use super::table::Value;

/// Members per page.
const PAGE: usize = 256;
const PAGE_NUMBERS: u64 = PAGE as u64;

/// Queue in pages. Members are found by number: the count of members pushed before.
///
/// A page is released when all of its members were popped, so memory follows the length, and a short queue stays in
/// the cache.
pub(super) struct Queue<T> {
    pages: VecDeque<Vec<T>>,
    /// A released page, for reuse.
    spare: Option<Vec<T>>,
    front: u64,
    back: u64,
}

impl<T: Copy> Queue<T> {
    pub(super) fn new() -> Self {
        Self { pages: VecDeque::new(), spare: None, front: 0, back: 0 }
    }

    pub(super) fn len(&self) -> usize {
        usize::try_from(self.back - self.front).unwrap_or(usize::MAX)
    }

    /// Number of the next member to pop, or to push if empty.
    pub(super) fn front_number(&self) -> u64 {
        self.front
    }

    /// Number of the next member to push.
    pub(super) fn next_number(&self) -> u64 {
        self.back
    }

    /// Numbers of the members.
    pub(super) fn numbers(&self) -> Range<u64> {
        self.front..self.back
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.get(self.front)
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&T> {
        let (page, place) = self.place(number)?;
        self.pages.get(page)?.get(place)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let (page, place) = self.place(number)?;
        self.pages.get_mut(page)?.get_mut(place)
    }

    #[inline]
    fn place(&self, number: u64) -> Option<(usize, usize)> {
        if number < self.front || number >= self.back {
            return None;
        }
        let page = usize::try_from(number / PAGE_NUMBERS - self.front / PAGE_NUMBERS).ok()?;
        Some((page, usize::try_from(number % PAGE_NUMBERS).ok()?))
    }

    pub(super) fn push(&mut self, member: T) {
        if self.back.is_multiple_of(PAGE_NUMBERS) {
            let page = self.spare.take();
            self.pages.push_back(page.unwrap_or_else(|| Vec::with_capacity(PAGE)));
        }
        if let Some(page) = self.pages.back_mut() {
            page.push(member);
            self.back += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let member = *self.front()?;
        self.front += 1;
        if self.front.is_multiple_of(PAGE_NUMBERS) {
            self.spare = self.pages.pop_front();
            self.spare.iter_mut().for_each(Vec::clear);
        }
        Some(member)
    }
}

/// Number of a queue member modulo 2^31, which leaves one value for none. Distinguishes members less than 2^31 numbers
/// apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Link(u32);

const MODULUS: u64 = 1 << 31;

impl Value for Link {
    const FREE: Self = Self::NONE;

    fn is_free(&self) -> bool {
        *self == Self::NONE
    }
}

impl Link {
    pub(super) const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(super) const fn to(number: u64) -> Self {
        Self((number % MODULUS) as u32)
    }

    /// The full number, no lower than `front`.
    #[inline]
    pub(super) fn number(self, front: u64) -> Option<u64> {
        let ahead = (u64::from(self.0) + MODULUS - front % MODULUS) % MODULUS;
        (self != Self::NONE).then_some(front + ahead)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_are_found_by_number() {
        let mut queue = Queue::new();
        for number in 0..10 * PAGE_NUMBERS {
            queue.push(number);
            if number >= 300 {
                assert_eq!(queue.pop(), Some(number - 300));
            }
            assert_eq!(queue.get(number), Some(&number));
            assert_eq!(queue.get(number + 1), None);
            assert_eq!(queue.get(queue.front_number()), queue.front());
            assert_eq!(queue.front_number().checked_sub(1).and_then(|gone| queue.get(gone)), None);
            assert!(queue.pages.len() <= 3, "{}", queue.pages.len());
        }
        assert_eq!(queue.len(), 300);
        while queue.pop().is_some() {}
        assert_eq!((queue.len(), queue.front(), queue.pages.len()), (0, None, 0));
    }

    proptest! {
        #[test]
        fn link_resolves_to_its_number(
            front in prop_oneof![0..10u64, MODULUS - 5..MODULUS + 5, 0..1u64 << 60],
            ahead in prop_oneof![0..10u64, MODULUS - 10..MODULUS, 0..MODULUS],
        ) {
            let link = Link::to(front + ahead);
            prop_assert!(link != Link::NONE);
            prop_assert_eq!(link.number(front), Some(front + ahead));
            prop_assert_eq!(Link::NONE.number(front), None);
        }
    }
}
