"""The runtime library of native code, in the language of `backends.native.rtlang`."""
