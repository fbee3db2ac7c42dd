//! Options by name, checked: a misspelt or unknown one is an error, never silence.

use std::ffi::CStr;
use std::ptr;

use ffmpeg_next::ffi as sys;

use super::c_string;
use crate::error::Error;

/// An owned `AVDictionary`.
pub(super) struct Options(*mut sys::AVDictionary);

impl Options {
    pub(super) fn new(pairs: &[(&str, &str)]) -> Result<Self, Error> {
        let mut options = Self(ptr::null_mut());
        for (name, value) in pairs {
            options.set(name, value)?;
        }
        Ok(options)
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let (name, value) = (c_string(name), c_string(value));
        // SAFETY: both strings live through the call, which copies them; the dictionary pointer is ours.
        let code = unsafe { sys::av_dict_set(&raw mut self.0, name.as_ptr(), value.as_ptr(), 0) };
        if code < 0 { Err(Error::internal("out of memory")) } else { Ok(()) }
    }

    /// The pointer that libav takes known options out of.
    pub(super) fn as_mut(&mut self) -> *mut *mut sys::AVDictionary {
        &raw mut self.0
    }

    /// Fails when libav left an option untouched.
    pub(super) fn all_taken(&self, by: &str) -> Result<(), Error> {
        let any = c_string("");
        // SAFETY: a null or valid dictionary is accepted; the key lives through the call.
        let left = unsafe { sys::av_dict_get(self.0, any.as_ptr(), ptr::null(), sys::AV_DICT_IGNORE_SUFFIX) };
        if left.is_null() {
            return Ok(());
        }
        // SAFETY: a returned entry and its key live as long as the dictionary, which is not changed here.
        let name = unsafe { CStr::from_ptr((*left).key) }.to_string_lossy();
        Err(Error::internal(format!("{by} does not know the option {name}")))
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: frees what this value owns; a null dictionary is fine.
        unsafe { sys::av_dict_free(&raw mut self.0) };
    }
}
