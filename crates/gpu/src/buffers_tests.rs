use super::*;

#[test]
fn classes_waste_at_most_a_fifth() {
    assert_eq!([0, 1, 256, 257, 1024].map(class), [256, 256, 256, 512, 1024]);
    for bytes in (1..2_000_000u64).step_by(977) {
        let size = class(bytes);
        assert!(size >= bytes && size.is_multiple_of(ALIGN), "{bytes} {size}");
        assert_eq!(class(size), size, "a class is its own");
        assert!(bytes < 4096 || (size - bytes) * 5 <= size, "{bytes} {size}");
    }
}
