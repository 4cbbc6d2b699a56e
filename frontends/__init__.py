"""The languages that River translates: each a frontend behind the protocol of `river.frontend`."""
