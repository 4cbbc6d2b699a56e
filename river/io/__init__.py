"""Sources and sinks by format: CSV, TSV, text lines, JSON lines, Parquet, Arrow, tables in memory, change logs.

Nouns: `errors` (row errors and the policy for them), `batches` (what a source yields), `schema` (River types
as Arrow types). Doors: `sources.open_source`, `sinks.open_sink`. Readers and writers by format: `delimited`,
`jsonlines`, `columnar`, `memory`, `display`. Over sources: `order` (time stamps, lateness), `deltas` (change
logs).
"""
