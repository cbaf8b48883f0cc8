//! What the pool keeps, lends again, and lets go of.

use super::*;

#[test]
fn a_block_is_lent_again_and_freed_once_the_pool_is_closed() {
    let pool = Arc::new(Blocks::default());
    let (mut first, second) = (pool.take(1000).unwrap(), pool.take(1000).unwrap());
    first.as_mut_bytes().fill(7);
    drop(first);
    let kept = pool.stats().free_bytes;
    assert!(kept >= 1000);
    let again = pool.take(1000).unwrap();
    assert_eq!(again.as_bytes(), [7; 1000], "the same memory");
    pool.close();
    drop((again, second));
    assert_eq!(pool.stats().free_bytes, 0, "nobody will ask a closed pool");
}

#[test]
fn a_block_changes_its_length_within_its_class_only() {
    let pool = Arc::new(Blocks::default());
    let mut block = pool.take(1000).unwrap();
    assert!(block.resize(1010));
    assert_eq!(block.as_mut_bytes().len(), 1010);
    assert!(!block.resize(2000) && !block.resize(100));
    assert_eq!(block.as_bytes().len(), 1010);
}

#[test]
fn a_size_that_no_memory_has_is_an_error() {
    let pool = Arc::new(Blocks::default());
    let mut block = pool.take(1000).unwrap();
    for bytes in [usize::MAX, usize::MAX - 63, usize::MAX - usize::MAX / 32, isize::MAX as usize] {
        assert!(matches!(pool.take(bytes), Err(RunError::OutOfMemory { .. })), "{bytes}");
        assert!(!block.resize(bytes), "{bytes}");
    }
    assert_eq!(block.as_bytes().len(), 1000);
}

#[test]
fn what_is_lent_is_counted_until_it_comes_back() {
    let pool = Arc::new(Blocks::default());
    assert!(pool.take(usize::MAX / 2).is_err());
    assert_eq!(pool.stats().used_bytes, 0, "what could not be had is not lent");
    let (first, second) = (pool.take(1000).unwrap(), pool.take(1000).unwrap());
    let both = pool.stats().used_bytes;
    assert!(both >= 2000);
    drop(first);
    assert_eq!(pool.stats().used_bytes, both / 2);
    pool.clear();
    assert_eq!(pool.stats().used_bytes, both / 2, "what is lent stays lent");
    pool.close();
    drop(second);
    assert_eq!(pool.stats().used_bytes, 0);
}

#[test]
fn blocks_that_share_huge_pages_are_apart_and_lent_again() {
    let pool = Arc::new(Blocks::default());
    // The first ones come from the allocator.
    let sizes = (0..40usize).map(|number| 50_000 + 30_000 * number);
    let fill = |(number, bytes): (usize, usize)| {
        let mut block = pool.take(bytes).unwrap();
        assert!(block.as_bytes().len() == bytes && (block.as_bytes().as_ptr() as usize).is_multiple_of(64));
        block.as_mut_bytes().fill(number as u8);
        block
    };
    let mut blocks: Vec<Block> = sizes.enumerate().map(fill).collect();
    assert!(blocks.iter().filter(|block| block.is_part()).count() > 30);
    for (number, block) in blocks.iter().enumerate() {
        assert!(block.as_bytes().iter().all(|byte| *byte == number as u8), "{number}");
    }
    let last = blocks.pop().unwrap();
    let (address, bytes) = (last.as_bytes().as_ptr(), last.as_bytes().len());
    drop(last);
    let again = pool.take(bytes).unwrap();
    assert_eq!((again.as_bytes().as_ptr(), again.as_bytes()[bytes - 1]), (address, 39), "the same memory");
    // What is still read outlives what is given back to the system beside it, and the pool.
    let kept = blocks.swap_remove(20);
    drop(blocks);
    pool.clear();
    drop(pool);
    assert!(kept.as_bytes().iter().all(|byte| *byte == 20));
}

impl Block {
    fn is_part(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| matches!(memory.storage, Storage::Part(_)))
    }
}
