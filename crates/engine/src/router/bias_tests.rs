//! What is learned about the model from plans is used for others.

use super::*;

fn about(size: f64) -> About {
    About { kind: 0, features: [1.0, size, 0.0, 0.0] }
}

#[test]
fn few_plans_say_nothing_and_some_say_their_median() {
    let mut biases = Biases::default();
    for number in 0..Bias::ENOUGH {
        assert_eq!(biases.factor(1, &about(0.0)), 1.0, "{number}");
        biases.tell(1, &about(0.0), if number == 2 { 100.0 } else { 2.0 }, None);
    }
    assert!((biases.factor(1, &about(0.0)) - 2.0).abs() < 1e-6);
    assert_eq!(biases.factor(0, &about(0.0)), 1.0, "another device");
    let unseen = About { kind: 3, ..about(0.0) };
    assert!((biases.factor(1, &unseen) - 2.0).abs() < 1e-6, "a kind that was not seen is taken for one of the others");
    biases.forget(1);
    assert_eq!(biases.factor(1, &about(0.0)), 1.0);
}

#[test]
fn what_depends_on_the_size_is_learned() {
    let mut biases = Biases::default();
    for number in 0..31 {
        let size = f64::from(number % 7 - 3) / 3.0;
        biases.tell(1, &about(size), (0.5 * size).exp(), None);
    }
    let (small, large) = (biases.factor(1, &about(-1.0)), biases.factor(1, &about(1.0)));
    assert!(small < 0.75 && large > 1.33, "{small} {large}");
}

#[test]
fn a_plan_that_settles_later_replaces_what_it_said() {
    let mut bias = Bias::default();
    let about = about(0.0);
    let places: Vec<u64> = (0..9).map(|_| bias.tell(about.features, 1.0, None)).collect();
    for place in places {
        assert_eq!(bias.tell(about.features, 0.0, Some(place)), place);
    }
    assert!((bias.factor(&about.features).unwrap() - 1.0).abs() < 1e-9);
    // Long gone ones begin anew.
    for _ in 0..Bias::WINDOW {
        bias.tell(about.features, 0.0, None);
    }
    assert_eq!(bias.tell(about.features, 0.0, Some(0)), 9 + Bias::WINDOW);
}
