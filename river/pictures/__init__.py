"""Pictures of stream graphs: SVG, Mermaid and plain text. Pure: a verified program in, a text out."""
