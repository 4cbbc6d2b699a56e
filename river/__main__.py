"""`python -m river` is the command `river`."""

from river.cli import command

if __name__ == "__main__":
    command()
