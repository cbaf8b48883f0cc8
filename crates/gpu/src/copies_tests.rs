use super::*;

#[test]
fn everything_is_copied_once() {
    for sizes in
        [vec![], vec![5], vec![1 << 22], vec![3, 1 << 22, 7], vec![1 << 20; 9], vec![1 << 22, 1, 1], vec![0; 4]]
    {
        for hands in [Hands::Own, Hands::Helped] {
            let from: Vec<Vec<u8>> = sizes.iter().zip(1..).map(|(bytes, value)| vec![value; *bytes]).collect();
            let mut to: Vec<Vec<u8>> = sizes.iter().map(|bytes| vec![0; *bytes]).collect();
            let pairs = from.iter().zip(&mut to).map(|(from, to)| (from.len(), Some((from, to))));
            run(hands, &mut pairs.collect::<Vec<_>>(), |(from, to)| {
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from)
            });
            assert_eq!(to, from);
        }
    }
}
