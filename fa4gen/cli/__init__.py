"""One small module per command: parse, call, print."""
