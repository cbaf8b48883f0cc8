//! Profiles as JSON: a profile enters, a line of text leaves, and the other way round, checked.

use super::{Fault, PROFILE_VERSION, Profile};
use serde::Deserialize;

/// Why a text is no profile.
///
/// ```
/// use breakeven::profile::{Profile, ReadError};
/// assert!(matches!(Profile::from_json("{\"version\": 1, "), Err(ReadError::Truncated { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is no JSON.
    #[error("this is no JSON: {why}; expected a profile that `engine.profile()` or `breakeven eval --profile` wrote")]
    NotJson {
        /// Where and why.
        why: String,
    },
    /// It ends too early.
    #[error("the file ends too early: {why}; it was not written to its end, or not copied to its end")]
    Truncated {
        /// Where.
        why: String,
    },
    /// It is some other JSON.
    #[error("this JSON is no profile: {why}")]
    NotAProfile {
        /// What is missing or wrong.
        why: String,
    },
    /// It was written by another version.
    #[error(
        "the profile is of version {found}, and version {PROFILE_VERSION} is expected: read it with the Breakeven that \
         wrote it, or profile again"
    )]
    Version {
        /// Its version.
        found: u64,
    },
    /// It does not add up.
    #[error("the profile can't come from a run: {0}")]
    Wrong(#[from] Fault),
}

impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> ReadError {
        let why = error.to_string();
        match error.classify() {
            serde_json::error::Category::Eof => ReadError::Truncated { why },
            serde_json::error::Category::Data => ReadError::NotAProfile { why },
            _ => ReadError::NotJson { why },
        }
    }
}

impl Profile {
    /// The profile as one line of JSON: the same bytes for the same profile.
    ///
    /// ```
    /// use breakeven::profile::Profile;
    /// let profile = Profile::example();
    /// assert_eq!(Profile::from_json(&profile.to_json())?, profile);
    /// # Ok::<(), breakeven::profile::ReadError>(())
    /// ```
    pub fn to_json(&self) -> String {
        // Numbers, strings and maps whose keys are names: nothing that JSON could not say.
        serde_json::to_string(self).map_or(String::new(), |text| text + "\n")
    }

    /// A profile from JSON. What does not add up is refused.
    pub fn from_json(text: &str) -> Result<Profile, ReadError> {
        /// Whatever else another version has, it has this.
        #[derive(Deserialize)]
        struct Head {
            version: Option<u64>,
        }
        // A list would be read as the fields of a profile without their names.
        if !text.trim_start().starts_with('{') {
            serde_json::from_str::<serde::de::IgnoredAny>(text)?;
            return Err(ReadError::NotAProfile { why: "it is no object".to_owned() });
        }
        let version = serde_json::from_str::<Head>(text)?.version;
        match version {
            Some(found) if found == u64::from(PROFILE_VERSION) => {}
            Some(found) => return Err(ReadError::Version { found }),
            None => return Err(ReadError::NotAProfile { why: "it has no `version`".to_owned() }),
        }
        let profile: Profile = serde_json::from_str(text)?;
        profile.check()?;
        Ok(profile)
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
