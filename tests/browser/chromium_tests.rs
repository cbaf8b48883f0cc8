//! How the browser is found, what is said if there is none or it does not start, and that nothing of it stays.

use super::*;

#[test]
fn the_first_known_name_counts_and_a_name_that_is_given_more() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        path
    };
    let chrome = place("google-chrome");
    assert_eq!(find(None, folder.path().as_os_str()).unwrap(), chrome);
    let chromium = place("chromium");
    assert_eq!(find(Some(OsString::new()), folder.path().as_os_str()).unwrap(), chromium);
    assert_eq!(find(Some("mine".into()), folder.path().as_os_str()).unwrap(), Path::new("mine"));
}

#[test]
fn without_a_browser_it_is_said_what_to_install() {
    let missing = find(None, OsStr::new("/nonexistent")).unwrap_err().to_string();
    for word in ["chromium-browser, google-chrome", "apt-get install chromium", VARIABLE] {
        assert!(missing.contains(word), "{word}: {missing}");
    }
}

#[test]
fn a_program_that_is_no_browser_is_named_with_what_it_said() {
    let absent = Browser::start_program("/nonexistent/chromium".into()).err().unwrap().to_string();
    assert!(absent.starts_with("/nonexistent/chromium did not start: "), "{absent}");
    // It takes no such flags, says so, and ends.
    let other = Browser::start_program("ls".into()).err().unwrap().to_string();
    assert!(other.contains("it ended at once") && other.contains("headless"), "{other}");
}

#[test]
fn nothing_of_a_browser_stays() {
    let browser = Browser::start().unwrap_or_else(|error| panic!("{error}"));
    let (folder, port) = (browser.folder.as_ref().unwrap().path().to_path_buf(), browser.port);
    assert!(folder.exists());
    drop(browser);
    assert!(!folder.exists(), "its folder stays");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "it still listens");
}
