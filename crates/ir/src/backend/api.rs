//! The graphics interfaces through which GPUs are reached.

use std::str::FromStr;

/// A graphics interface through which GPUs are reached.
///
/// ```
/// use breakeven_ir::backend::Api;
/// assert_eq!("vulkan".parse(), Ok(Api::Vulkan));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Api {
    /// Vulkan.
    Vulkan,
    /// OpenGL and OpenGL ES.
    Gl,
    /// Direct3D 12.
    Dx12,
    /// Metal.
    Metal,
}

impl Api {
    /// Every interface, in the order in which their adapters are listed.
    pub const ALL: &'static [Api] = &[Api::Vulkan, Api::Metal, Api::Dx12, Api::Gl];

    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Api::Vulkan => "vulkan",
            Api::Gl => "gl",
            Api::Dx12 => "dx12",
            Api::Metal => "metal",
        }
    }
}

impl FromStr for Api {
    type Err = String;

    fn from_str(text: &str) -> Result<Api, String> {
        Api::ALL.iter().copied().find(|api| api.name() == text).ok_or_else(|| "vulkan, gl, dx12 or metal".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for api in Api::ALL {
            assert_eq!(api.name().parse(), Ok(*api));
        }
        assert!("cuda".parse::<Api>().is_err());
    }
}
