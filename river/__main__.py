"""`python -m river` is the command `river`."""

from river.cli import run

if __name__ == "__main__":
    run()
