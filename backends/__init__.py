"""The platforms River runs on: each a backend behind the protocol of `river.backend`."""
